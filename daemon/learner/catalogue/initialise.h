// The seeded initialisation. The project's own generator draws the values, with
// a stream for each tensor's name. So nodes with different versions of LibTorch
// and different processors start from the same bits. Torch-free.
#ifndef DFL_LEARNER_CATALOGUE_INITIALISE_H_
#define DFL_LEARNER_CATALOGUE_INITIALISE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

// How one tensor starts.
struct InitRule {
  enum class Kind { kConstant, kUniform };

  static InitRule Constant(float value) { return {Kind::kConstant, value, 0}; }
  // Weights before a ReLU: uniform with variance 2/fan_in, so that neither
  // signals nor gradients shrink from layer to layer (He et al. 2015, eq. 10).
  static InitRule BeforeRelu(int64_t fan_in) {
    return {Kind::kUniform, 0, 2.0 / static_cast<double>(fan_in)};
  }
  // Weights of the last layer: uniform with variance 1/fan_in.
  static InitRule Output(int64_t fan_in) {
    return {Kind::kUniform, 0, 1.0 / static_cast<double>(fan_in)};
  }

  Kind kind = Kind::kConstant;
  float value = 0;      // kConstant
  double variance = 0;  // kUniform
};

// Writes every tensor into `flat` [sum of sizes]; rules[i] is for tensors[i]. A
// tensor's values depend on (seed, its name, its rule) only.
void FillTensors(uint64_t seed, absl::Span<const ports::TensorInfo> tensors,
                 absl::Span<const InitRule> rules, absl::Span<float> flat);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_CATALOGUE_INITIALISE_H_
