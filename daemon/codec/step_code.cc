#include "daemon/codec/step_code.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"

namespace dfl::codec {
namespace {

using core::kStepBlock;

int64_t CodeBytes(int bits, int64_t count) { return (count * bits + 7) / 8; }

int64_t VectorBytes(int bits, int64_t n) {
  const int64_t whole = n / kStepBlock;
  const int64_t rest = n % kStepBlock;
  return whole * (4 + CodeBytes(bits, kStepBlock)) +
         (rest > 0 ? 4 + CodeBytes(bits, rest) : 0);
}

// `out` is all 0.
void EncodeBlock(int bits, float step, absl::Span<const float> values,
                 char* out) {
  std::memcpy(out, &step, 4);
  if (step == 0) return;
  out += 4;
  const double half = static_cast<double>(int64_t{1} << (bits - 1));
  uint32_t waiting = 0;
  int filled = 0;
  for (const float value : values) {
    // The value is that of a code, except for rounding.
    const double code =
        std::nearbyint(value / static_cast<double>(step) - 0.5) + half;
    DFL_CHECK(code >= 0 && code < 2 * half);
    waiting |= static_cast<uint32_t>(code) << filled;
    for (filled += bits; filled >= 8; filled -= 8) {
      *out++ = static_cast<char>(waiting & 0xFF);
      waiting >>= 8;
    }
  }
  if (filled > 0) *out = static_cast<char>(waiting);
}

// False: there are bits where there should be none.
bool DecodeBlock(int bits, float step, const char* codes,
                 absl::Span<float> out) {
  if (step == 0) {
    std::fill(out.begin(), out.end(), 0.0F);
    const int64_t bytes = CodeBytes(bits, static_cast<int64_t>(out.size()));
    return std::all_of(codes, codes + bytes, [](char c) { return c == 0; });
  }
  const int32_t half = int32_t{1} << (bits - 1);
  const uint32_t mask = (uint32_t{1} << bits) - 1;
  uint32_t waiting = 0;
  int filled = 0;
  for (float& value : out) {
    for (; filled < bits; filled += 8) {
      waiting |= uint32_t{static_cast<unsigned char>(*codes++)} << filled;
    }
    value = core::StepValue(static_cast<int32_t>(waiting & mask) - half, step);
    waiting >>= bits;
    filled -= bits;
  }
  return waiting == 0;
}

// Calls block(position in the bytes, first value, count) for each.
template <typename Block>
void ForEachBlock(int bits, int vectors, int64_t n, Block block) {
  int64_t at = 0;
  const int64_t length = n / vectors;
  for (int64_t q = 0; q < vectors; ++q) {
    for (int64_t begin = 0; begin < length; begin += kStepBlock) {
      const int64_t count = std::min(kStepBlock, length - begin);
      block(at, q * length + begin, count);
      at += 4 + CodeBytes(bits, count);
    }
  }
}

}  // namespace

int64_t StepCodeBytes(int bits, int vectors, int64_t n) {
  return vectors * VectorBytes(bits, n / vectors);
}

std::string EncodeSteps(const core::StepCodes& codes) {
  const auto n = static_cast<int64_t>(codes.values.size());
  std::string bytes(
      static_cast<size_t>(StepCodeBytes(codes.bits, codes.vectors, n)), '\0');
  size_t block = 0;
  ForEachBlock(codes.bits, codes.vectors, n,
               [&](int64_t at, int64_t first, int64_t count) {
                 EncodeBlock(codes.bits, codes.steps[block++],
                             absl::MakeConstSpan(codes.values)
                                 .subspan(static_cast<size_t>(first),
                                          static_cast<size_t>(count)),
                             &bytes[static_cast<size_t>(at)]);
               });
  return bytes;
}

absl::Status DecodeSteps(int bits, int vectors, absl::string_view bytes,
                         absl::Span<float> out) {
  absl::Status status;
  ForEachBlock(
      bits, vectors, static_cast<int64_t>(out.size()),
      [&](int64_t at, int64_t first, int64_t count) {
        if (!status.ok()) return;
        float step;
        std::memcpy(&step, &bytes[static_cast<size_t>(at)], 4);
        // "Not within" also catches NaN.
        const bool in_range =
            step >= core::kLeastStep && step <= core::kMostStep;
        if (!in_range && !(step == 0 && !std::signbit(step))) {
          status = absl::InvalidArgumentError(absl::StrCat(
              "the step of values ", first, " to ", first + count - 1, " is ",
              step, "; allowed: 0, or from 2^-100 to 2^100"));
        } else if (!DecodeBlock(bits, step,
                                bytes.data() + static_cast<size_t>(at) + 4,
                                out.subspan(static_cast<size_t>(first),
                                            static_cast<size_t>(count)))) {
          status = absl::InvalidArgumentError(absl::StrCat(
              "the codes of values ", first, " to ", first + count - 1,
              " have bits set where there must be none"));
        }
      });
  return status;
}

}  // namespace dfl::codec
