#include "daemon/base/distributions.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "daemon/base/check.h"

namespace dfl {
namespace {

constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kInvLn2 = 1.44269504088896338700;

// 2^k for k in [-1022, 1023].
double PowerOfTwo(int k) {
  const uint64_t bits = static_cast<uint64_t>(k + 1023) << 52;
  double out;
  std::memcpy(&out, &bits, sizeof(out));
  return out;
}

}  // namespace

double Exp(double x) {
  if (x != x) return x;
  if (x > 709.7) return std::numeric_limits<double>::infinity();
  if (x < -708.0) return 0.0;
  // x = k ln 2 + r, |r| <= ln2 / 2.
  const double scaled = x * kInvLn2;
  const int k = static_cast<int>(scaled + (scaled >= 0 ? 0.5 : -0.5));
  const double r = (x - k * kLn2High) - k * kLn2Low;
  // Taylor series; |r| < 0.35 makes 14 terms enough.
  double term = 1.0;
  double sum = 1.0;
  for (int i = 1; i <= 14; ++i) {
    term = term * r / i;
    sum += term;
  }
  return sum * PowerOfTwo(k);
}

double Log(double x) {
  if (x != x || x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (x > std::numeric_limits<double>::max()) return x;
  int exponent = 0;
  if (x < std::numeric_limits<double>::min()) {  // subnormal
    x *= 0x1.0p54;
    exponent -= 54;
  }
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  exponent += static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL;
  double m;  // in [1, 2)
  std::memcpy(&m, &bits, sizeof(m));
  if (m > 1.4142135623730951) {
    m *= 0.5;
    exponent += 1;
  }
  // ln m = 2 atanh((m - 1) / (m + 1)).
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double sum = 0;
  for (int i = 25; i >= 1; i -= 2) {
    sum = sum * s2 + 1.0 / i;
  }
  return exponent * kLn2High + (2 * s * sum + exponent * kLn2Low);
}

double Normal(Rng& rng) {
  for (;;) {
    const double u = 2 * rng.Uniform() - 1;
    const double v = 2 * rng.Uniform() - 1;
    const double q = u * u + v * v;
    if (q > 0 && q < 1) {
      return u * std::sqrt(-2 * Log(q) / q);
    }
  }
}

double Exponential(Rng& rng) { return -Log(1 - rng.Uniform()); }

double Gamma(Rng& rng, double shape) {
  DFL_CHECK(shape > 0);
  if (shape < 1) {
    // Gamma(shape) = Gamma(shape + 1) * U^(1/shape).
    const double boosted = Gamma(rng, shape + 1);
    return Exp(Log(boosted) + Log(1 - rng.Uniform()) / shape);
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = Normal(rng);
    const double t = 1 + c * x;
    if (t <= 0) continue;
    const double v = t * t * t;
    const double u = 1 - rng.Uniform();
    if (Log(u) < 0.5 * x * x + d - d * v + d * Log(v)) return d * v;
  }
}

double Beta(Rng& rng, double a, double b) {
  const double x = Gamma(rng, a);
  const double y = Gamma(rng, b);
  if (x + y > 0) return x / (x + y);
  // Both underflowed (tiny shapes): the mass sits at 0 and 1.
  return rng.Bernoulli(a / (a + b)) ? 1.0 : 0.0;
}

}  // namespace dfl
