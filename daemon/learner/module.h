// What the learner trains: a function from a batch to outputs, with named
// tensors. Implementations: models.h (ours) and torchscript.h (from a file).
#ifndef DFL_LEARNER_MODULE_H_
#define DFL_LEARNER_MODULE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
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

  // input [rows, ...] float32 -> [rows, outputs] (a TorchScript regression:
  // [rows] too).
  virtual at::Tensor Forward(const at::Tensor& input,
                             const ForwardMode& mode) = 0;

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
