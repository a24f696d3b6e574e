// The analytic problems: local losses f_i known in closed form, for golden
// vectors, tests and the simulator. No data files, no torch.
//
// Data is kept in double, parameters are float32 as everywhere, and all sums
// run in double in row order. f_i is a mean over the rows; on a mini-batch it
// is the mean over the listed rows only (a row listed twice counts twice).
#ifndef DFL_SIMPORTS_PROBLEMS_H_
#define DFL_SIMPORTS_PROBLEMS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"

namespace dfl::simports {

// Immutable after construction, hence thread-safe.
class Problem {
 public:
  virtual ~Problem() = default;

  // The number of parameters, >= 1.
  virtual int64_t n() const = 0;
  // The number of rows of data, >= 1.
  virtual int64_t rows() const = 0;

  // f(w) over `batch`, row indices in [0, rows()); empty = all rows. `w` is
  // [n]. O(batch n).
  virtual double Loss(absl::Span<const float> w,
                      absl::Span<const int64_t> batch = {}) const = 0;

  // out[l] = df/dw[l] over `batch`, rounded to float once. `w` and `out` are
  // [n] and may be the same memory. Returns Loss(w, batch), which is a
  // by-product.
  virtual double Gradient(absl::Span<const float> w,
                          absl::Span<const int64_t> batch,
                          absl::Span<float> out) const = 0;
};

// f(w) = 1/(2 rows) ||A w - b||^2. [PaME] Example 1
class LeastSquares : public Problem {
 public:
  // `a` is [rows x n], row by row; `b` is [rows].
  LeastSquares(std::vector<double> a, std::vector<double> b);

  int64_t n() const override { return n_; }
  int64_t rows() const override { return static_cast<int64_t>(b_.size()); }
  double Loss(absl::Span<const float> w,
              absl::Span<const int64_t> batch = {}) const override;
  double Gradient(absl::Span<const float> w, absl::Span<const int64_t> batch,
                  absl::Span<float> out) const override;

 private:
  std::vector<double> a_;
  std::vector<double> b_;
  int64_t n_;
};

// f(w) = mean(ln(1 + e^<a,w>) - b <a,w>) + (lambda/2) ||w||^2; the lambda term
// is in every mini-batch gradient. [PaME] Example 2
class Logistic : public Problem {
 public:
  // `a` is [rows x n], row by row; `b` is [rows], each 0 or 1; lambda >= 0.
  Logistic(std::vector<double> a, std::vector<double> b, double lambda);

  int64_t n() const override { return n_; }
  int64_t rows() const override { return static_cast<int64_t>(b_.size()); }
  double Loss(absl::Span<const float> w,
              absl::Span<const int64_t> batch = {}) const override;
  double Gradient(absl::Span<const float> w, absl::Span<const int64_t> batch,
                  absl::Span<float> out) const override;

 private:
  std::vector<double> a_;
  std::vector<double> b_;
  double lambda_;
  int64_t n_;
};

// Mean cross-entropy of the linear model logits = W x + c; w = W [C x d] row by
// row, then the bias c [C].
class Softmax : public Problem {
 public:
  // `x` is [rows x d], row by row; `labels` is [rows], each in [0, classes).
  Softmax(std::vector<double> x, std::vector<int64_t> labels, int64_t classes);

  int64_t n() const override { return classes_ * (d_ + 1); }
  int64_t rows() const override { return static_cast<int64_t>(labels_.size()); }
  double Loss(absl::Span<const float> w,
              absl::Span<const int64_t> batch = {}) const override;
  double Gradient(absl::Span<const float> w, absl::Span<const int64_t> batch,
                  absl::Span<float> out) const override;

  int64_t classes() const { return classes_; }
  // out[c] = softmax(logits of `row`)[c]; `out` is [classes].
  void Predict(absl::Span<const float> w, int64_t row,
               absl::Span<double> out) const;

 private:
  // As Predict; also returns the cross-entropy of the row.
  double Probabilities(absl::Span<const float> w, int64_t row,
                       absl::Span<double> out) const;

  std::vector<double> x_;
  std::vector<int64_t> labels_;
  int64_t classes_;
  int64_t d_;
};

// ------------------------------------------------------------ generators ----

// One problem per node, and the parameters that the data was made from.
struct ProblemSet {
  std::vector<std::unique_ptr<Problem>> nodes;
  std::vector<double> truth;  // w*, [n]
};

struct ExampleSpec {
  int64_t nodes = 4;           // m >= 1
  int64_t n = 100;             // parameters, >= 1
  int64_t rows_per_node = 50;  // >= 1
  uint64_t seed = 1;
};

// [PaME] Example 1, linear regression: a, e ~ N(0, 1), b = <a, w*> + 0.5 e;
// max(1, floor(0.01 n + 1/2)) entries of w* are not zero, uniformly from
// [-2, -0.5] and [0.5, 2]. A pure function of `spec`; node i's data depends on
// neither `nodes` nor the other nodes'.
ProblemSet LinearRegressionExample(const ExampleSpec& spec);

// [PaME] Example 2, logistic regression: a ~ N(0, 1), b = 1 with probability
// 1/(1 + e^-<a, w*>); half of w* (at least one) is not zero, as above;
// lambda = 0.001.
ProblemSet LogisticRegressionExample(const ExampleSpec& spec);

// Classes of rows, each around a centre, for softmax regression.
struct SoftmaxSpec {
  int64_t nodes = 4;           // m >= 1
  int64_t features = 20;       // d >= 1
  int64_t classes = 10;        // C >= 2
  int64_t rows_per_node = 50;  // >= 1
  int64_t test_rows = 500;     // >= 1
  double skew = 0;             // Dirichlet concentration, >= 0; 0: no skew
  uint64_t seed = 1;
  std::vector<int64_t> flipped;  // nodes whose labels y are C - 1 - y
};

struct SoftmaxSet {
  std::vector<std::unique_ptr<Softmax>> nodes;
  // The same for all nodes; all classes are equally probable.
  std::unique_ptr<Softmax> test;
  std::vector<int64_t> test_labels;
};

// A row of class c is mu_c + N(0, 1) in each of d coordinates, |mu_c| = 3 in a
// uniformly random direction: a linear model tells most classes apart, not all.
// With `skew` > 0 node i draws its labels from p_i ~ Dir(skew, ..., skew), else
// uniformly. A pure function of `spec`; node i's data depends on neither
// `nodes` nor the other nodes'.
SoftmaxSet SoftmaxExample(const SoftmaxSpec& spec);

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_PROBLEMS_H_
