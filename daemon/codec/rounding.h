// The grids that lossy values are rounded to, one value at a time: what
// value_code.h describes, in the form that the vector code of value_kernels.cc
// must agree with bit for bit. Where a machine has no vectors, and at the ends
// of runs, this is what runs.
//
// Only IEEE + - * / without contraction is used, so all platforms agree.
#ifndef DFL_CODEC_ROUNDING_H_
#define DFL_CODEC_ROUNDING_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace dfl::codec {

static_assert(std::endian::native == std::endian::little,
              "the codec loads and stores little-endian numbers in place");
static_assert(std::numeric_limits<float>::is_iec559);

// Of a float32's bits.
inline constexpr uint32_t kSign = 0x80000000u;
inline constexpr uint32_t kMagnitude = 0x7FFFFFFFu;
inline constexpr uint32_t kInfinity = 0x7F800000u;
// 2^-14, below which fp16 has a fixed step.
inline constexpr uint32_t kSmallestNormalFp16 = 0x38800000u;
inline constexpr float kFp16Step = 0x1.0p-24f;
inline constexpr double kFp16Steps = 0x1.0p24;
inline constexpr float kLargestFp16 = 65504.0f;
inline constexpr uint32_t kLargestFp16Code = 0x7BFFu;
// One unit of a draw.
inline constexpr double kDrawUnit = 0x1.0p-32;
// int8: see value_code.h.
inline constexpr float kInt8Steps = 126.0f;
inline constexpr float kSmallestScale = 0x1.0p-126f;
inline constexpr float kLargestInt8 = 0x1.0p126f;
inline constexpr double kFarOut = 0x1.0p22;

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

inline uint32_t Bits(float v) { return std::bit_cast<uint32_t>(v); }
inline float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

// The 32 random bits of the q-th sent value.
inline uint32_t RoundingDraw(uint64_t rounding_seed, uint64_t q) {
  // The q-th output of splitmix64.
  uint64_t x = rounding_seed + (q + 1) * 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<uint32_t>(x >> 32) ^ static_cast<uint32_t>(x >> 63);
}

// v on the grid of a float with `kCut` mantissa bits fewer and float32's
// exponents. Inf and NaN stay; nothing finite becomes infinite.
template <int kCut>
uint32_t RoundMagnitude(uint32_t magnitude, uint32_t draw) {
  constexpr uint32_t kMask = ~((1u << kCut) - 1);
  if (magnitude >= kInfinity) return magnitude;
  const uint32_t rounded = magnitude + (draw >> (32 - kCut));
  return std::min(rounded, kInfinity - 1) & kMask;
}

inline float RoundBf16(float v, uint32_t draw) {
  const uint32_t bits = Bits(v);
  return FromBits((bits & kSign) | RoundMagnitude<16>(bits & kMagnitude, draw));
}

// fp16's grid with an unbounded exponent upwards.
inline float RoundFp16(float v, uint32_t draw) {
  const uint32_t bits = Bits(v);
  const uint32_t magnitude = bits & kMagnitude;
  uint32_t rounded;
  if (magnitude >= kSmallestNormalFp16) {
    rounded = RoundMagnitude<13>(magnitude, draw);
  } else {
    const double steps = static_cast<double>(FromBits(magnitude)) * kFp16Steps +
                         draw * kDrawUnit;
    rounded = Bits(static_cast<float>(static_cast<int32_t>(steps)) * kFp16Step);
  }
  return FromBits((bits & kSign) | rounded);
}

// `v` is on the grid; beyond the largest it saturates.
inline uint16_t PackFp16(float v) {
  const uint32_t bits = Bits(v);
  const uint32_t magnitude = bits & kMagnitude;
  uint32_t code;
  if (magnitude >= kSmallestNormalFp16) {
    code = std::min((magnitude - 0x38000000u) >> 13, kLargestFp16Code);
  } else {
    code = static_cast<uint32_t>(FromBits(magnitude) *
                                 static_cast<float>(kFp16Steps));
  }
  return static_cast<uint16_t>((bits & kSign) >> 16 | code);
}

inline float UnpackFp16(uint16_t code) {
  const uint32_t magnitude = code & 0x7FFFu;
  const uint32_t normal = (magnitude << 13) + 0x38000000u;
  const uint32_t small = Bits(static_cast<float>(magnitude) * kFp16Step);
  return FromBits((code & 0x8000u) << 16 |
                  (magnitude < 0x0400u ? small : normal));
}

inline uint16_t PackBf16(float v) {
  return static_cast<uint16_t>(Bits(v) >> 16);
}

inline float UnpackBf16(uint16_t code) {
  return FromBits(uint32_t{code} << 16);
}

// floor(steps + u) for |steps| < 2^22.
inline int32_t RoundSteps(double steps, uint32_t draw) {
  const double y = steps + draw * kDrawUnit;
  const auto truncated = static_cast<int32_t>(y);
  return truncated - (y < truncated ? 1 : 0);
}

// The differences that value_code.h defines, between what `code` carries and
// the receiver's `own`.
inline float DifferenceFp16(uint16_t code, float own, uint32_t draw) {
  const float remote = UnpackFp16(code);
  const float rounded = RoundFp16(own, draw);
  const bool nothing_known =
      (remote == kLargestFp16 && rounded >= kLargestFp16) ||
      (remote == -kLargestFp16 && rounded <= -kLargestFp16);
  return nothing_known ? 0.0f : remote - rounded;
}

inline float DifferenceBf16(uint16_t code, float own, uint32_t draw) {
  return UnpackBf16(code) - RoundBf16(own, draw);
}

// `inverse` is 1 / scale in double; scale is not 0.
inline float DifferenceInt8(int8_t code, float scale, double inverse, float own,
                            uint32_t draw) {
  const double steps = static_cast<double>(own) * inverse;
  // "Not near" also catches NaN.
  if (!(std::fabs(steps) < kFarOut)) {
    return static_cast<float>(code) * scale - own;
  }
  return static_cast<float>(code - RoundSteps(steps, draw)) * scale;
}

}  // namespace dfl::codec

#endif  // DFL_CODEC_ROUNDING_H_
