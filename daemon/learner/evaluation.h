// Loss and scores of a bound model on test rows.
#ifndef DFL_LEARNER_EVALUATION_H_
#define DFL_LEARNER_EVALUATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/data/dataset.h"
#include "daemon/data/standardizer.h"
#include "daemon/learner/batch_tensors.h"
#include "daemon/learner/training_pass.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

// The order in which test rows are evaluated: the same on every node and in
// every run, so that the first rows of it are a fixed sample.
std::vector<int64_t> EvaluationOrder(int64_t rows);

// Of the rows `rows` of `test`, at least one; filled into `batch` part by part.
// A model may leave anything in the bound buffers.
// Errors: DATA_LOSS when a loss is not finite, with the rows; as
// ComputeOutputs. Throws what LibTorch throws.
absl::StatusOr<ports::Evaluation> EvaluateRows(
    const BoundModel& model, const data::DatasetView& test,
    absl::Span<const int64_t> rows, const data::Standardizer& standardizer,
    BatchTensors& batch);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_EVALUATION_H_
