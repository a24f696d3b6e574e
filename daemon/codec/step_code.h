// core::StepCodes as bytes. Each block of up to 256 values of each vector has:
//
//   step   4 bytes, fp32: 0, or from 2^-100 to 2^100
//   codes  ceil(count b / 8) bytes: code + 2^{b-1} of b bits each, the first
//          one in the lowest bits; the rest of the last byte is 0. All are 0
//          if the step is 0.
//
// So n values of one bit take about n/8 + n/64 bytes.
#ifndef DFL_CODEC_STEP_CODE_H_
#define DFL_CODEC_STEP_CODE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/vector/step_codes.h"

namespace dfl::codec {

// The length of n values in all; n is a multiple of `vectors`.
int64_t StepCodeBytes(int bits, int vectors, int64_t n);

// Requires finite values that are whole codes of their steps.
std::string EncodeSteps(const core::StepCodes& codes);

// Decodes the values, bit for bit as they were encoded (-0 as 0). `bytes` has
// the length StepCodeBytes gives for `out`.
// Errors: INVALID_ARGUMENT  a step is out of range, or unused bits are set.
absl::Status DecodeSteps(int bits, int vectors, absl::string_view bytes,
                         absl::Span<float> out);

}  // namespace dfl::codec

#endif  // DFL_CODEC_STEP_CODE_H_
