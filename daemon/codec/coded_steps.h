// core::StepCodes as bytes of variable length: the same increments as
// step_code.h writes, entropy coded, and a step only once where all blocks of
// a vector have the same. For each vector:
//
//   kind    1 byte: 0 a step for each block of 256, 1 one step for all
//   steps   4 bytes each, fp32: 0, or from 2^-100 to 2^100
//   codes   of the blocks whose step is not 0: small_integers.h, around -1/2
//
// The codes of all vectors come last, together. Codes of one bit are signs and
// gain nothing.
#ifndef DFL_CODEC_CODED_STEPS_H_
#define DFL_CODEC_CODED_STEPS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/vector/step_codes.h"

namespace dfl::codec {

// The bounds of what n values in all take; n is a multiple of `vectors`.
int64_t LeastCodedStepBytes(int vectors, int64_t n);
int64_t MostCodedStepBytes(int vectors, int64_t n);

// Requires finite values that are whole codes of their steps.
std::string EncodeCodedSteps(const core::StepCodes& codes);

// Decodes the values, bit for bit as they were encoded (-0 as 0).
// Errors: INVALID_ARGUMENT  the length is wrong, a step is out of range, or a
// code does not fit `bits`.
absl::Status DecodeCodedSteps(int bits, int vectors, absl::string_view bytes,
                              absl::Span<float> out);

}  // namespace dfl::codec

#endif  // DFL_CODEC_CODED_STEPS_H_
