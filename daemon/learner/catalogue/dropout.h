// Dropout masks drawn by the project's own generator: a pure function of
// (seed of the data, number of the gradient, layer), never of LibTorch's global
// generator, so that a repeated step repeats its masks. Torch-free.
#ifndef DFL_LEARNER_CATALOGUE_DROPOUT_H_
#define DFL_LEARNER_CATALOGUE_DROPOUT_H_

#include <cstdint>

#include "absl/types/span.h"

namespace dfl::learner {

// The seed of all masks of gradient number `step`.
uint64_t DropoutSeed(uint64_t data_seed, int64_t step);

// Sets each value to 0 with the given probability in [0, 1), otherwise to
// 1 / (1 - probability), so that the expectation of a unit does not change.
// Cost: one draw of 64 bits for two values.
void FillDropoutMask(uint64_t dropout_seed, int64_t layer, double probability,
                     absl::Span<float> mask);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_CATALOGUE_DROPOUT_H_
