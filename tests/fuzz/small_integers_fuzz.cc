// Entropy-coded integers (daemon/codec/small_integers.h), and increments made
// of them (coded_steps.h). The first bytes say how many there are.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/codec/coded_steps.h"
#include "daemon/codec/small_integers.h"
#include "daemon/core/vector/step_codes.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {
namespace {

// Whatever they were written by, they can be written and read again.
void CheckIntegers(absl::string_view bytes, size_t count) {
  std::vector<int16_t> values(count);
  if (!codec::DecodeSmallIntegers(bytes, absl::MakeSpan(values)).ok()) return;
  for (const codec::Centre centre :
       {codec::Centre::kZero, codec::Centre::kMinusHalf}) {
    const std::string again = codec::EncodeSmallIntegers(values, centre);
    const auto length = static_cast<int64_t>(again.size());
    const auto n = static_cast<int64_t>(count);
    DFL_CHECK(codec::LeastSmallIntegerBytes(n) <= length &&
              length <= codec::MostSmallIntegerBytes(n));
    std::vector<int16_t> back(count);
    DFL_CHECK(codec::DecodeSmallIntegers(again, absl::MakeSpan(back)).ok());
    DFL_CHECK(back == values);
  }
}

void CheckSteps(absl::string_view bytes, int bits, int vectors, int64_t n) {
  core::StepCodes codes(bits, vectors, n);
  const absl::Status decoded = codec::DecodeCodedSteps(
      bits, vectors, bytes, absl::MakeSpan(codes.values));
  if (!decoded.ok()) return;
  for (const float value : codes.values) DFL_CHECK(std::isfinite(value));
}

}  // namespace

DFL_FUZZ_TARGET(small_integers)(absl::string_view bytes) {
  Pieces pieces(bytes);
  const uint8_t form = pieces.Byte();
  // A few, or more than a segment.
  const size_t count = pieces.Number() + (form % 2 == 0 ? 0 : 40'000);
  const absl::string_view rest = pieces.Rest();
  CheckIntegers(rest, count);
  CheckSteps(rest, 1 + form % core::kMostStepBits, 1 + form / 64,
             1 + static_cast<int64_t>(count % 600));
}

}  // namespace dfl::fuzz
