// base^exponent by repeated squaring: the same bits on every platform (libm's
// pow is not).
#ifndef DFL_CORE_VECTOR_POWERS_H_
#define DFL_CORE_VECTOR_POWERS_H_

#include <cstdint>

namespace dfl::core {

// exponent >= 0.
inline double Power(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace dfl::core

#endif  // DFL_CORE_VECTOR_POWERS_H_
