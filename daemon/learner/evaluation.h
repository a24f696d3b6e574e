// Loss and scores of a bound model on test rows.
#ifndef DFL_LEARNER_EVALUATION_H_
#define DFL_LEARNER_EVALUATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/data/dataset.h"
#include "daemon/data/standardizer.h"
#include "daemon/learner/batch_tensors.h"
#include "daemon/learner/training_pass.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

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
