#include "daemon/codec/value_code.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"

namespace dfl::codec {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the codec loads and stores little-endian numbers in place");
static_assert(std::numeric_limits<float>::is_iec559);

using core::ValueType;

constexpr uint32_t kSign = 0x80000000u;
constexpr uint32_t kMagnitude = 0x7FFFFFFFu;
constexpr uint32_t kInfinity = 0x7F800000u;
constexpr float kLargestFp16 = 65504.0f;
constexpr double kDrawUnit = 0x1.0p-32;
// The int8 scale's bounds, see the header.
constexpr float kSmallestScale = 0x1.0p-126f;
constexpr float kLargestInt8 = 0x1.0p126f;
constexpr float kSteps = 126.0f;
constexpr double kFarOut = 0x1.0p22;
constexpr int64_t kInt8BlockBytes = 4 + kBlock;

template <typename T>
T Load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

template <typename T>
void Store(T value, char* p) {
  std::memcpy(p, &value, sizeof(T));
}

uint32_t Bits(float v) { return std::bit_cast<uint32_t>(v); }
float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

// v on the grid of a float with `kCut` mantissa bits fewer and float32's
// exponents. Inf and NaN stay; nothing finite becomes infinite.
template <int kCut>
uint32_t RoundMagnitude(uint32_t magnitude, uint32_t draw) {
  constexpr uint32_t kMask = ~((1u << kCut) - 1);
  if (magnitude >= kInfinity) return magnitude;
  const uint32_t rounded = magnitude + (draw >> (32 - kCut));
  return std::min(rounded, kInfinity - 1) & kMask;
}

float RoundBf16(float v, uint32_t draw) {
  const uint32_t bits = Bits(v);
  return FromBits((bits & kSign) | RoundMagnitude<16>(bits & kMagnitude, draw));
}

// fp16's grid with an unbounded exponent upwards.
float RoundFp16(float v, uint32_t draw) {
  const uint32_t bits = Bits(v);
  const uint32_t magnitude = bits & kMagnitude;
  uint32_t rounded;
  if (magnitude >= 0x38800000u) {  // 2^-14
    rounded = RoundMagnitude<13>(magnitude, draw);
  } else {
    const double steps =
        static_cast<double>(FromBits(magnitude)) * 0x1.0p24 + draw * kDrawUnit;
    rounded =
        Bits(static_cast<float>(static_cast<int32_t>(steps)) * 0x1.0p-24f);
  }
  return FromBits((bits & kSign) | rounded);
}

// `v` is on the grid; beyond the largest it saturates.
uint16_t PackFp16(float v) {
  const uint32_t bits = Bits(v);
  const uint32_t magnitude = bits & kMagnitude;
  uint32_t code;
  if (magnitude >= 0x38800000u) {
    code = std::min((magnitude - 0x38000000u) >> 13, 0x7BFFu);
  } else {
    code = static_cast<uint32_t>(FromBits(magnitude) * 0x1.0p24f);
  }
  return static_cast<uint16_t>((bits & kSign) >> 16 | code);
}

float UnpackFp16(uint16_t code) {
  const uint32_t magnitude = code & 0x7FFFu;
  const uint32_t normal = (magnitude << 13) + 0x38000000u;
  const uint32_t small = Bits(static_cast<float>(magnitude) * 0x1.0p-24f);
  return FromBits((code & 0x8000u) << 16 |
                  (magnitude < 0x0400u ? small : normal));
}

float UnpackBf16(uint16_t code) { return FromBits(uint32_t{code} << 16); }

// floor(v / scale + u) for |v / scale| < 2^22.
int32_t RoundSteps(double steps, uint32_t draw) {
  const double y = steps + draw * kDrawUnit;
  const auto truncated = static_cast<int32_t>(y);
  return truncated - (y < truncated ? 1 : 0);
}

float BlockScale(absl::Span<const float> values) {
  float largest = 0;
  for (const float v : values) largest = std::max(largest, std::fabs(v));
  if (largest == 0) return 0;
  return std::max(largest / kSteps, kSmallestScale);
}

void EncodeInt8(uint64_t rounding_seed, int64_t q,
                absl::Span<const float> values, char* out) {
  const float scale = BlockScale(values);
  Store(scale, out);
  char* const codes = out + 4;
  if (scale == 0) {
    std::memset(codes, 0, values.size());
    return;
  }
  const double inverse = 1.0 / static_cast<double>(scale);
  for (size_t k = 0; k < values.size(); ++k) {
    const int32_t code =
        RoundSteps(static_cast<double>(values[k]) * inverse,
                   RoundingDraw(rounding_seed, static_cast<uint64_t>(q) + k));
    codes[k] = static_cast<char>(static_cast<int8_t>(code));
  }
}

absl::Status NotFinite(int64_t q, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("sent value ", q, " ", what,
                                                 "; only finite values are "
                                                 "taken"));
}

// The first of `count` values of T for which `bad`, or -1.
template <typename T, typename Bad>
int64_t FirstBad(const char* values, int64_t count, Bad bad) {
  constexpr int64_t kRun = 4096;
  for (int64_t begin = 0; begin < count; begin += kRun) {
    const int64_t end = std::min(count, begin + kRun);
    bool any = false;
    for (int64_t q = begin; q < end; ++q) {
      any |= bad(Load<T>(values + q * int64_t{sizeof(T)}));
    }
    if (!any) continue;
    for (int64_t q = begin; q < end; ++q) {
      if (bad(Load<T>(values + q * int64_t{sizeof(T)}))) return q;
    }
  }
  return -1;
}

// Calls add(k, own value, draw) -> difference for each value of the run.
template <bool kDraws, typename Difference>
void Accumulate(const ValueRun& run, const DifferenceSink& sink,
                Difference difference) {
  const float weight = sink.weight;
  const auto one = [&](int64_t k, int64_t i) {
    const uint32_t draw =
        kDraws
            ? RoundingDraw(run.rounding_seed, static_cast<uint64_t>(run.q + k))
            : 0;
    sink.sum[i] += weight * difference(k, sink.own[i], draw);
  };
  if (run.coordinates == nullptr) {
    const int64_t offset = run.first - sink.begin;
    for (int64_t k = 0; k < run.count; ++k) one(k, offset + k);
    if (sink.counts == nullptr) return;
    for (int64_t k = 0; k < run.count; ++k) sink.counts[offset + k] += 1;
    return;
  }
  for (int64_t k = 0; k < run.count; ++k) {
    one(k, int64_t{run.coordinates[k]} - sink.begin);
  }
  if (sink.counts == nullptr) return;
  for (int64_t k = 0; k < run.count; ++k) {
    sink.counts[int64_t{run.coordinates[k]} - sink.begin] += 1;
  }
}

const char* Int8Block(const char* values, int64_t q) {
  return values + q / kBlock * kInt8BlockBytes;
}

}  // namespace

int64_t ValueBytes(core::ValueType type, int64_t count) {
  switch (type) {
    case ValueType::kFp32:
      return 4 * count;
    case ValueType::kFp16:
    case ValueType::kBf16:
      return 2 * count;
    case ValueType::kInt8:
      return count + 4 * ((count + kBlock - 1) / kBlock);
    case ValueType::kMod:
    case ValueType::kModAnswer:
    case ValueType::kCodedSteps:
    case ValueType::kSteps:
      break;  // step_code.h
  }
  DFL_CHECK(false);
}

float LargestMagnitude(core::ValueType type) {
  return type == ValueType::kInt8 ? kLargestInt8
                                  : std::numeric_limits<float>::max();
}

uint64_t RoundingSeed(uint64_t message_seed) {
  return DeriveSeed(message_seed, "rounding");
}

void EncodeBlock(core::ValueType type, uint64_t rounding_seed, int64_t q,
                 absl::Span<const float> values, char* out) {
  DFL_CHECK(q % kBlock == 0 && !values.empty() &&
            static_cast<int64_t>(values.size()) <= kBlock);
  const auto first = static_cast<uint64_t>(q);
  switch (type) {
    case ValueType::kFp32:
      std::memcpy(out, values.data(), values.size() * 4);
      return;
    case ValueType::kFp16:
      for (size_t k = 0; k < values.size(); ++k) {
        const uint32_t draw = RoundingDraw(rounding_seed, first + k);
        Store(PackFp16(RoundFp16(values[k], draw)), out + 2 * k);
      }
      return;
    case ValueType::kBf16:
      for (size_t k = 0; k < values.size(); ++k) {
        const uint32_t draw = RoundingDraw(rounding_seed, first + k);
        Store(static_cast<uint16_t>(Bits(RoundBf16(values[k], draw)) >> 16),
              out + 2 * k);
      }
      return;
    case ValueType::kInt8:
      EncodeInt8(rounding_seed, q, values, out);
      return;
    case ValueType::kMod:
    case ValueType::kModAnswer:
    case ValueType::kCodedSteps:
    case ValueType::kSteps:
      break;
  }
  DFL_CHECK(false);
}

absl::Status CheckValues(core::ValueType type, const char* values,
                         int64_t count) {
  int64_t bad = -1;
  switch (type) {
    case ValueType::kFp32:
      bad = FirstBad<uint32_t>(values, count, [](uint32_t v) {
        return (v & kInfinity) == kInfinity;
      });
      break;
    case ValueType::kFp16:
      bad = FirstBad<uint16_t>(values, count,
                               [](uint16_t v) { return (~v & 0x7C00) == 0; });
      break;
    case ValueType::kBf16:
      bad = FirstBad<uint16_t>(values, count,
                               [](uint16_t v) { return (~v & 0x7F80) == 0; });
      break;
    case ValueType::kInt8:
      for (int64_t q = 0; q < count; q += kBlock) {
        const auto scale = Load<float>(Int8Block(values, q));
        // "Not within" also catches NaN.
        const bool in_range =
            scale >= kSmallestScale && scale <= kLargestInt8 / kSteps;
        if (!in_range && Bits(scale) != 0) {
          return absl::InvalidArgumentError(
              absl::StrCat("the scale of block ", q / kBlock, " is ", scale,
                           "; allowed: 0, or from 2^-126 to 2^126 / 126"));
        }
      }
      return absl::OkStatus();
    case ValueType::kMod:
    case ValueType::kModAnswer:
    case ValueType::kCodedSteps:
    case ValueType::kSteps:
      break;
  }
  if (bad >= 0) return NotFinite(bad, "is infinite or not a number");
  return absl::OkStatus();
}

void DecodeRun(core::ValueType type, const char* values, int64_t q,
               absl::Span<float> out) {
  switch (type) {
    case ValueType::kFp32:
      std::memcpy(out.data(), values + 4 * q, out.size() * 4);
      return;
    case ValueType::kFp16:
      for (size_t k = 0; k < out.size(); ++k) {
        out[k] = UnpackFp16(Load<uint16_t>(values + 2 * q + 2 * k));
      }
      return;
    case ValueType::kBf16:
      for (size_t k = 0; k < out.size(); ++k) {
        out[k] = UnpackBf16(Load<uint16_t>(values + 2 * q + 2 * k));
      }
      return;
    case ValueType::kInt8: {
      const char* const block = Int8Block(values, q);
      const auto scale = Load<float>(block);
      const char* const codes = block + 4 + q % kBlock;
      for (size_t k = 0; k < out.size(); ++k) {
        out[k] = static_cast<float>(static_cast<int8_t>(codes[k])) * scale;
      }
      return;
    }
    case ValueType::kMod:
    case ValueType::kModAnswer:
    case ValueType::kCodedSteps:
    case ValueType::kSteps:
      break;
  }
  DFL_CHECK(false);
}

void AddDifferences(core::ValueType type, const ValueRun& run,
                    const DifferenceSink& sink) {
  switch (type) {
    case ValueType::kFp32: {
      const char* const at = run.values + 4 * run.q;
      Accumulate<false>(run, sink, [at](int64_t k, float own, uint32_t) {
        return Load<float>(at + 4 * k) - own;
      });
      return;
    }
    case ValueType::kFp16: {
      const char* const at = run.values + 2 * run.q;
      Accumulate<true>(run, sink, [at](int64_t k, float own, uint32_t draw) {
        const float remote = UnpackFp16(Load<uint16_t>(at + 2 * k));
        const float rounded = RoundFp16(own, draw);
        const bool nothing_known =
            (remote == kLargestFp16 && rounded >= kLargestFp16) ||
            (remote == -kLargestFp16 && rounded <= -kLargestFp16);
        return nothing_known ? 0.0f : remote - rounded;
      });
      return;
    }
    case ValueType::kBf16: {
      const char* const at = run.values + 2 * run.q;
      Accumulate<true>(run, sink, [at](int64_t k, float own, uint32_t draw) {
        return UnpackBf16(Load<uint16_t>(at + 2 * k)) - RoundBf16(own, draw);
      });
      return;
    }
    case ValueType::kInt8: {
      const char* const block = Int8Block(run.values, run.q);
      const auto scale = Load<float>(block);
      if (scale == 0) {
        Accumulate<false>(
            run, sink, [](int64_t, float own, uint32_t) { return 0.0f - own; });
        return;
      }
      const char* const codes = block + 4 + run.q % kBlock;
      const double inverse = 1.0 / static_cast<double>(scale);
      Accumulate<true>(
          run, sink,
          [codes, scale, inverse](int64_t k, float own, uint32_t draw) {
            const auto code =
                static_cast<int32_t>(static_cast<int8_t>(codes[k]));
            const double steps = static_cast<double>(own) * inverse;
            // "Not near" also catches NaN.
            if (!(std::fabs(steps) < kFarOut)) {
              return static_cast<float>(code) * scale - own;
            }
            return static_cast<float>(code - RoundSteps(steps, draw)) * scale;
          });
      return;
    }
    case ValueType::kMod:
    case ValueType::kModAnswer:
    case ValueType::kCodedSteps:
    case ValueType::kSteps:
      break;
  }
  DFL_CHECK(false);
}

}  // namespace dfl::codec
