// What the matrix-form tests compute with: plain matrices of doubles, weights
// of small graphs, and least squares with full gradients.
#ifndef DFL_TESTS_UNIT_CORE_MATRIX_H_
#define DFL_TESTS_UNIT_CORE_MATRIX_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace dfl::core {

// --------------------------------------------------------------- matrices ----

// In doubles, filled with 0: X, Y, Z are [nodes x n], a row for each node; W,
// A, B are [nodes x nodes].
class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), values_(rows * columns) {}

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  double& operator()(int64_t i, int64_t j) { return values_[i * columns_ + j]; }
  double operator()(int64_t i, int64_t j) const {
    return values_[i * columns_ + j];
  }
  absl::Span<const double> row(int64_t i) const {
    return absl::MakeConstSpan(values_).subspan(i * columns_, columns_);
  }
  // f of every entry.
  Matrix Each(const std::function<double(double)>& f) const;
  // The largest |entry|.
  double Largest() const;

 private:
  int64_t rows_;
  int64_t columns_;
  std::vector<double> values_;
};

Matrix operator+(Matrix a, const Matrix& b);
Matrix operator-(Matrix a, const Matrix& b);
Matrix operator*(double a, const Matrix& b);
Matrix operator*(const Matrix& a, const Matrix& b);
Matrix Identity(int64_t m);
Matrix Diagonal(const std::vector<double>& entries);

// ---------------------------------------------------------------- weights ----

// From -> to; an undirected edge is two of them.
using Arcs = std::vector<std::pair<int64_t, int64_t>>;
Arcs BothWays(const Arcs& edges);

// 1/(1 + max(d_i, d_j)) on edges, the rest on the diagonal.
Matrix Metropolis(int64_t m, const Arcs& arcs);
// 1/m everywhere.
Matrix Uniform(int64_t m);
// a_ij = 1/(1 + number of in-neighbours of i): rows sum to 1.
Matrix ReceiverWeights(int64_t m, const Arcs& arcs);
// b_ji = 1/(1 + number of out-neighbours of i): columns sum to 1.
Matrix SenderWeights(int64_t m, const Arcs& arcs);

// By what nodes weigh what they hear (row i: node i) and what they send (column
// i: node i). Of an undirected graph both are W.
struct Weights {
  Matrix hears;
  Matrix sends;
};

// Five in a ring with a chord, by Metropolis.
Weights ChordedRing();
// Five arcs round and two across; not balanced.
Weights Digraph5();
// All to all, alike.
Weights Complete(int64_t m);

// --------------------------------------------------------------- problems ----

// Node i has f_i(w) = |A_i w - b_i|^2 / (2 rows) up to a constant, kept as
// 1/2 w' H_i w - h_i' w; rows are drawn from a seed. No two nodes have one
// minimum.
class LeastSquares {
 public:
  LeastSquares(int64_t nodes, int64_t n);

  int64_t nodes() const { return static_cast<int64_t>(h_.size()); }
  int64_t n() const { return n_; }
  std::vector<double> Gradient(int64_t node, absl::Span<const double> w) const;
  // Row i: the gradient of f_i at row i.
  Matrix Gradients(const Matrix& x) const;

 private:
  int64_t n_;
  std::vector<Matrix> hessian_;
  std::vector<std::vector<double>> h_;
};

// Where nodes start, each elsewhere; exact in fp32.
Matrix Starts(int64_t nodes, int64_t n);

// One float operation errs by at most 2^-24 = 6e-8 of its result, to either
// side. An entry sees some 40 of them in a round, and these recursions are
// stable: they do not enlarge what was wrong before. So after 40 rounds it is
// off by about sqrt(40 * 40) * 6e-8 = 2.4e-6 of the largest entry; this is four
// times that. (Measured: up to 6e-7. A wrong term, or one of another round,
// shows with 1e-3 and more within a few rounds.)
inline constexpr double kTolerance = 1e-5;

// Whether `got` is `want` up to `tolerance` of the larger of 1 and its largest
// entry; else says where they differ most.
testing::AssertionResult Close(const Matrix& got, const Matrix& want,
                               double tolerance = kTolerance);

}  // namespace dfl::core

#endif  // DFL_TESTS_UNIT_CORE_MATRIX_H_
