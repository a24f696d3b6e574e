// Accuracy and macro F1 of a classification, errors of a regression, gathered
// batch by batch. Torch-free.
#ifndef DFL_LEARNER_CATALOGUE_SCORES_H_
#define DFL_LEARNER_CATALOGUE_SCORES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace dfl::learner {

// Thread-compatible.
class Scores {
 public:
  explicit Scores(int64_t classes);

  // Labels and predictions of the same rows, each in [0, classes).
  void Add(absl::Span<const int64_t> labels,
           absl::Span<const int64_t> predictions);

  int64_t rows() const { return rows_; }
  // Share of rows predicted as labelled, in [0, 1]; 0 without rows.
  double Accuracy() const;
  // Mean over classes of F1 = 2 tp / (labelled + predicted), in [0, 1]. A class
  // that is neither labelled nor predicted anywhere is left out of the mean.
  double MacroF1() const;

 private:
  struct Count {
    int64_t labelled = 0;
    int64_t predicted = 0;
    int64_t both = 0;
  };
  std::vector<Count> counts_;  // [classes]
  int64_t rows_ = 0;
};

// Thread-compatible.
class RegressionScores {
 public:
  // Targets and outputs of the same rows.
  void Add(absl::Span<const float> targets, absl::Span<const float> outputs);

  int64_t rows() const { return rows_; }
  // Mean of |output - target|; none without rows.
  std::optional<double> MeanAbsolute() const;
  // R^2 = 1 - sum (output - target)^2 / sum (target - mean target)^2, at most
  // 1; none where all targets are the same.
  std::optional<double> RSquared() const;

 private:
  int64_t rows_ = 0;
  double absolute_ = 0;
  double squares_ = 0;
  // Of the targets' distances to the first one, which costs fewer digits.
  double first_ = 0;
  double sum_ = 0;
  double sum_of_squares_ = 0;
};

}  // namespace dfl::learner

#endif  // DFL_LEARNER_CATALOGUE_SCORES_H_
