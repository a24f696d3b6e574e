// Differences in steps: what is added to a replica (replica_rounds.h) in a few
// bits a coordinate.
//
//   value = (code + 1/2) step,   code in [-2^{b-1}, 2^{b-1} - 1]
//
// with one step for each block of 256 coordinates; where several vectors are
// coded together, blocks begin anew in each. b = 1 is a sign and a magnitude.
// There is no code for 0: what an addition misses by must be kept and sent
// later (error feedback), so this is for differences, never for model values.
// Written as bits by codec/step_code.h.
#ifndef DFL_CORE_VECTOR_STEP_CODES_H_
#define DFL_CORE_VECTOR_STEP_CODES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"

namespace dfl::core {

inline constexpr int64_t kStepBlock = 256;
inline constexpr int kMostStepBits = 16;
inline constexpr int kMostStepVectors = 16;
// A step is 0, and its block's values are, or lies between these.
inline constexpr float kLeastStep = 0x1.0p-100F;
inline constexpr float kMostStep = 0x1.0p100F;

struct StepCodes {
  // All 0. Requires bits and vectors in [1, 16].
  StepCodes(int bits, int vectors, int64_t n);

  int bits;
  int vectors;
  std::vector<float> steps;  // [vectors StepCount(n)]
  FlatVector values;         // [vectors n], as everybody decodes them
};

// Blocks of a vector of n.
int64_t StepCount(int64_t n);

// (code + 1/2) step, rounded once. The same at sender and receiver.
float StepValue(int32_t code, float step);

// The q-th vector becomes C(v), v = target - base [n], bits = 1. In each block
// B
//
//   C(v) = (|v|_1 / |B|) sign(v),  sign(0) = 1
//
// |v - C(v)|^2 = |v|^2 - |v|_1^2 / |B| <= (1 - 1/256) |v|^2: a contraction, as
// CHOCO-SGD and BEER need. The scaled sign of [CHOCO-SGD] sec. 2, by block.
void CodeSigns(int64_t q, absl::Span<const float> target,
               absl::Span<const float> base, StepCodes& codes);

// The q-th vector becomes the codes nearest to v = target - base, in steps of
// `step` >= 0: l = clip(rint(v/step - 1/2), -2^{b-1}, 2^{b-1} - 1). [ANQ-NIDS].
void CodeSteps(int64_t q, absl::Span<const float> target,
               absl::Span<const float> base, float step, StepCodes& codes);

// replica += increments, bit for bit the same on every node. An entry that was
// ever added to is not 0 (the least normal number stands for it) and is finite.
void AddIncrements(absl::Span<const float> increments,
                   absl::Span<float> replica);

}  // namespace dfl::core

#endif  // DFL_CORE_VECTOR_STEP_CODES_H_
