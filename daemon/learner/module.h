// What the learner trains: a function from a batch to outputs, with named
// tensors. Implementations: models.h (ours) and torchscript.h (from a file).
#ifndef DFL_LEARNER_MODULE_H_
#define DFL_LEARNER_MODULE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

// A handle. Copies share the tensor, so binding one binds all.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

struct ForwardMode {
  bool training = false;
  uint64_t dropout_seed = 0;  // training only
};

// Thread-compatible. Members throw what LibTorch throws (torch_errors.h).
class Module {
 public:
  virtual ~Module() = default;

  // input [rows, ...] float32 -> outputs, which CheckOutputs has to check.
  // Errors: INVALID_ARGUMENT when a file's model gives no tensor.
  virtual absl::StatusOr<at::Tensor> Forward(const at::Tensor& input,
                                             const ForwardMode& mode) = 0;

  // What to do with the new tensors that a file's model gives a name of its own
  // (`self.mean = ...`) instead of changing the bound tensor's values.
  enum class Assigned {
    kKeep,  // their values go to the bound tensors: after training's backward
    kDrop,  // after an evaluation
  };
  // Makes the module's names stand for the tensors of Parameters() and
  // Buffers() again. Call after each Forward, once its graph is no longer
  // needed.
  // Errors: INVALID_ARGUMENT names a trained tensor that got another one
  // (kKeep), or a buffer that got one of another shape or type.
  virtual absl::Status TakeBack(Assigned assigned) = 0;

  // Trained tensors and floating-point buffers, in flat order.
  virtual std::vector<NamedTensor> Parameters() const = 0;
  virtual std::vector<NamedTensor> Buffers() const = 0;

  // Writes the starting values of the tensors that `info` lays out.
  virtual absl::Status Initialise(uint64_t seed, const ports::ModelInfo& info,
                                  absl::Span<float> parameters,
                                  absl::Span<float> buffers) const = 0;
};

}  // namespace dfl::learner

#endif  // DFL_LEARNER_MODULE_H_
