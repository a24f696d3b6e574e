// core::StepCodes as bytes. For each vector, and of it for each block of up to 256
// values:
//
//   step   4 bytes, fp32: 0, or from 2^-100 to 2^100
//   codes  ceil(count b / 8) bytes: code + 2^{b-1} of b bits each, the first one
//          in the lowest bits; what is left of the last byte is 0. All 0 where
//          the step is.
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

// Of n values altogether, n a multiple of `vectors`.
int64_t StepCodeBytes(int bits, int vectors, int64_t n);

// Requires finite values that are whole codes of their steps.
std::string EncodeSteps(const core::StepCodes& codes);

// The values, bit for bit those that were encoded (-0 as 0). `bytes` has the
// length that StepCodeBytes says of `out`.
// Errors: INVALID_ARGUMENT  a step out of range, or bits where there are none.
absl::Status DecodeSteps(int bits, int vectors, absl::string_view bytes,
                         absl::Span<float> out);

}  // namespace dfl::codec

#endif  // DFL_CODEC_STEP_CODE_H_
