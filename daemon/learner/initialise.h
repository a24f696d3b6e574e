// The seeded initialisation: values drawn by the project's own generator, one
// stream for each tensor's name, so that nodes with other LibTorch versions and
// processors start from the same bits. Torch-free.
#ifndef DFL_LEARNER_INITIALISE_H_
#define DFL_LEARNER_INITIALISE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

// How one tensor starts.
struct InitRule {
  enum class Kind { kConstant, kUniform };

  static InitRule Constant(float value) { return {Kind::kConstant, value, 0}; }
  // U(-1/sqrt(fan_in), 1/sqrt(fan_in)): LibTorch's default for the weights and
  // biases of linear and convolution layers.
  static InitRule FanIn(int64_t fan_in) { return {Kind::kUniform, 0, fan_in}; }

  Kind kind = Kind::kConstant;
  float value = 0;
  int64_t fan_in = 0;
};

// Writes every tensor into `flat` [sum of sizes] by the rule of the same place.
// A tensor's values depend on (seed, its name, its rule) only.
void FillTensors(uint64_t seed, absl::Span<const ports::TensorInfo> tensors,
                 absl::Span<const InitRule> rules, absl::Span<float> flat);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_INITIALISE_H_
