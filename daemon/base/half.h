// Half precision as it stands in the files of other programs.
#ifndef DFL_BASE_HALF_H_
#define DFL_BASE_HALF_H_

#include <bit>
#include <cstdint>

namespace dfl {

// The value of an IEEE 754 half, infinities and NaN included. Exact.
inline float FloatOfHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1FU;
  const uint32_t fraction = half & 0x3FFU;
  if (exponent == 0) {  // zero, or below the normal numbers
    const float tiny = static_cast<float>(fraction) * 0x1.0p-24F;
    return sign != 0 ? -tiny : tiny;
  }
  const uint32_t wide = exponent == 31 ? 255U : exponent + 112U;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

}  // namespace dfl

#endif  // DFL_BASE_HALF_H_
