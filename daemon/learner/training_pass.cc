#include "daemon/learner/training_pass.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "absl/status/status.h"
#include "daemon/base/status_macros.h"
#include "daemon/learner/losses.h"

namespace dfl::learner {
namespace {

// However a pass ends, the module's names stand for the bound tensors then.
class Tidy {
 public:
  explicit Tidy(Module& module) : module_(module) {}
  ~Tidy() { module_.TakeBack(Module::Assigned::kDrop).IgnoreError(); }
  Tidy(const Tidy&) = delete;
  Tidy& operator=(const Tidy&) = delete;

 private:
  Module& module_;
};

}  // namespace

absl::StatusOr<double> ComputeGradient(const BoundModel& model,
                                       const BatchTensors& batch,
                                       uint64_t dropout_seed) {
  const c10::AutoGradMode gradients(true);
  const Tidy tidy(model.module);
  model.binding.BeginGradient();
  ForwardMode mode;
  mode.training = true;
  mode.dropout_seed = dropout_seed;
  DFL_ASSIGN_OR_RETURN(const at::Tensor outputs,
                       model.module.Forward(batch.input(), mode));
  DFL_RETURN_IF_ERROR(
      CheckOutputs(model.spec, batch.answers().size(0), outputs));
  if (!outputs.requires_grad()) {
    return absl::InvalidArgumentError(
        "the output of forward depends on no trained tensor; allowed: an "
        "output that can be trained");
  }
  const at::Tensor loss = MeanLoss(model.spec, outputs, batch.answers());
  loss.backward();
  DFL_RETURN_IF_ERROR(model.module.TakeBack(Module::Assigned::kKeep));
  DFL_RETURN_IF_ERROR(model.binding.EndGradient());
  return loss.item<double>();
}

absl::StatusOr<at::Tensor> ComputeOutputs(const BoundModel& model,
                                          const BatchTensors& batch) {
  const c10::AutoGradMode no_gradients(false);
  const Tidy tidy(model.module);
  DFL_ASSIGN_OR_RETURN(at::Tensor outputs,
                       model.module.Forward(batch.input(), ForwardMode()));
  DFL_RETURN_IF_ERROR(
      CheckOutputs(model.spec, batch.answers().size(0), outputs));
  return outputs;
}

}  // namespace dfl::learner
