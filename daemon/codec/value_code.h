// How the sent values are written: fp32 as they are; fp16, bf16 and int8 with
// stochastic rounding. Works on runs of values inside one block of 256 *sent*
// values, so any part of a message can be made or read on its own.
//
// Draws. The q-th sent value of a message is rounded with 32 bits: a hash of
// the message's rounding seed and q. Sender and receiver compute the same bits,
// for any range, in any order.
//
// fp16  [values of 2 bytes] The magnitude's float32 bits plus 13 random bits,
//       the lowest 13 cut off: up with probability (what is cut) / 2^13. Below
//       2^-14 the grid has the fixed step 2^-24. Beyond 65504 a sender's value
//       saturates.
// bf16  [values of 2 bytes] Likewise with 16 bits; saturates at the largest
//       finite bf16, 3.39e38.
// int8  [block: scale as fp32, then up to 256 codes of 1 byte] scale =
//       max |v| / 126, so that code = floor(v / scale + u), u in [0, 1), needs
//       no clamping; at least 2^-126, and 0 only when all values are 0.
//       Carries magnitudes up to 2^126.
//
// Difference to the receiver's own value: dec(code) - dec(code of own). The own
// value is coded with the same scale and draw, but never clamped. So the mean
// of the difference is remote - own, and equal values give exactly 0.
//   - A saturated fp16 says only "beyond 65504". Its difference to an own value
//     beyond that on the same side is 0.
//   - An own value more than 2^22 int8 steps out is not rounded.
//
// Steps, the fifth type, are written as step_code.h says. No function here
// takes them.
//
// rounding.h has the grids one value at a time, value_kernels.h the vectors.
#ifndef DFL_CODEC_VALUE_CODE_H_
#define DFL_CODEC_VALUE_CODE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/core/vector/message_format.h"

namespace dfl::codec {

// Sent values per int8 scale, and the longest run the functions here take.
inline constexpr int64_t kBlock = 256;

// Bytes of `count` values, the first of which starts a block.
int64_t ValueBytes(core::ValueType type, int64_t count);

// The largest magnitude that `type` carries.
float LargestMagnitude(core::ValueType type);

// The seed of a message's rounding draws, from the message's seed.
uint64_t RoundingSeed(uint64_t message_seed);

// Writes the block whose first value is sent value q (a multiple of kBlock):
// ValueBytes(type, values.size()) bytes at `out`. 1 to kBlock values, finite
// and at most LargestMagnitude(type).
void EncodeBlock(core::ValueType type, uint64_t rounding_seed, int64_t q,
                 absl::Span<const float> values, char* out);

// OK when each of the `count` values at `values` (all of a message) decodes to
// a finite number.
// Errors: INVALID_ARGUMENT names the first sent value that does not.
absl::Status CheckValues(core::ValueType type, const char* values,
                         int64_t count);

// Decodes the sent values q to q + out.size() - 1, which lie in one block, of
// a message whose values start at `values` and have passed CheckValues().
void DecodeRun(core::ValueType type, const char* values, int64_t q,
               absl::Span<float> out);

// A run of sent values within one block, and where each belongs.
struct ValueRun {
  const char* values = nullptr;  // of the whole message, checked
  uint64_t rounding_seed = 0;
  int64_t q = 0;  // first of the run
  int64_t count = 0;
  // The coordinate of each; null for consecutive ones, the first of which is
  // `first`.
  const uint32_t* coordinates = nullptr;
  int64_t first = 0;
};

// The receiver's vectors for the coordinates from `begin` on.
struct DifferenceSink {
  int64_t begin = 0;
  const float* own = nullptr;
  float weight = 0;
  float* sum = nullptr;
  int32_t* counts = nullptr;  // may be null
};

// sum += weight * difference, counts += 1, for each value of the run.
void AddDifferences(core::ValueType type, const ValueRun& run,
                    const DifferenceSink& sink);

// own += weight * difference, for each value of the run; `own` is the
// receiver's vector from coordinate `begin` on. Where that is 0, every bit
// stays.
void MoveByDifferences(core::ValueType type, const ValueRun& run, float weight,
                       int64_t begin, float* own);

}  // namespace dfl::codec

#endif  // DFL_CODEC_VALUE_CODE_H_
