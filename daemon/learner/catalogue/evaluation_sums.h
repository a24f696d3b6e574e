// Loss and scores of an evaluation, gathered part by part. Torch-free.
#ifndef DFL_LEARNER_CATALOGUE_EVALUATION_SUMS_H_
#define DFL_LEARNER_CATALOGUE_EVALUATION_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/data/dataset.h"
#include "daemon/learner/catalogue/model_spec.h"
#include "daemon/learner/catalogue/scores.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

// The order in which test rows are evaluated: the same on every node and in
// every run, so that the first rows of it are a fixed sample.
std::vector<int64_t> EvaluationOrder(int64_t rows);

// How many rows of `row_size` values are evaluated at once: what one takes as
// activations grows with its size.
int64_t EvaluationBatch(int64_t row_size);

// What a mean loss over rows divides by: the number of rows, or the sum of the
// weights of their classes.
double LossWeight(const ResolvedSpec& spec, int64_t rows,
                  absl::Span<const int64_t> labels);

// That an evaluation gives no result: the loss of `rows`, of which `wild` are
// (bad_batch.h), is not finite. DATA_LOSS.
absl::Status LossNotFinite(const data::DatasetView& test,
                           absl::Span<const int64_t> rows,
                           absl::Span<const size_t> wild);

// Thread-compatible.
class EvaluationSums {
 public:
  // `spec` must outlive it.
  explicit EvaluationSums(const ResolvedSpec& spec)
      : spec_(spec), scores_(spec.classes) {}

  // A part of the rows: their mean loss, and what they are and were taken for.
  void AddClasses(double loss, absl::Span<const int64_t> labels,
                  absl::Span<const int64_t> predictions);
  void AddTargets(double loss, absl::Span<const float> targets,
                  absl::Span<const float> outputs);

  // Of all parts, at least one.
  ports::Evaluation Result() const;

 private:
  void AddLoss(double loss, int64_t rows, absl::Span<const int64_t> labels);

  const ResolvedSpec& spec_;
  Scores scores_;
  RegressionScores errors_;
  double loss_ = 0;
  double weight_ = 0;
  int64_t rows_ = 0;
};

}  // namespace dfl::learner

#endif  // DFL_LEARNER_CATALOGUE_EVALUATION_SUMS_H_
