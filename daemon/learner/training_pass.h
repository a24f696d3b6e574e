// One pass of a bound model over a batch, as training, evaluations and the
// trial of a model share it.
#ifndef DFL_LEARNER_TRAINING_PASS_H_
#define DFL_LEARNER_TRAINING_PASS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "daemon/learner/batch_tensors.h"
#include "daemon/learner/catalogue/model_spec.h"
#include "daemon/learner/flat_binding.h"
#include "daemon/learner/module.h"

namespace dfl::learner {

// A model whose tensors are bound. Borrows all; nothing is null.
struct BoundModel {
  const ResolvedSpec& spec;
  Module& module;
  FlatBinding& binding;
};

// Writes the gradient of the mean loss over what `batch` holds into the bound
// gradient, without the l2 term, and what forward made of the buffers into the
// bound buffers. Returns the loss. An error may leave anything in both.
// Errors: INVALID_ARGUMENT when the outputs cannot be used or depend on nothing
// that is trained, and as Module::TakeBack; INTERNAL as
// FlatBinding::EndGradient. Throws what LibTorch throws.
absl::StatusOr<double> ComputeGradient(const BoundModel& model,
                                       const BatchTensors& batch,
                                       uint64_t dropout_seed);

// The outputs for what `batch` holds, in evaluation mode, checked. Call
// BeginEvaluation before.
// Errors: INVALID_ARGUMENT when they cannot be used. Throws as above.
absl::StatusOr<at::Tensor> ComputeOutputs(const BoundModel& model,
                                          const BatchTensors& batch);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_TRAINING_PASS_H_
