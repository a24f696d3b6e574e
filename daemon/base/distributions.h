// Our own distributions by fixed arithmetic: only + - x / and square root from
// the platform, so that the same seed gives the same bits everywhere (libm's
// exp, log and cos differ with and without FMA, and between Debian releases).
#ifndef DFL_BASE_DISTRIBUTIONS_H_
#define DFL_BASE_DISTRIBUTIONS_H_

#include "daemon/base/rng.h"

namespace dfl {

// e^x and ln(x) (x > 0) with a relative error below 1e-13, bit-identical on all
// platforms. Exp saturates to 0 and +infinity; Log(0) is -infinity.
double Exp(double x);
double Log(double x);

// Standard normal (Marsaglia's polar method).
double Normal(Rng& rng);

// Exponential with mean 1.
double Exponential(Rng& rng);

// Gamma with shape > 0 and scale 1 (Marsaglia and Tsang 2000; shape < 1 by the
// power trick, computed in the logarithm so that tiny shapes do not underflow).
double Gamma(Rng& rng, double shape);

// Beta(a, b), a > 0, b > 0, in [0, 1].
double Beta(Rng& rng, double a, double b);

}  // namespace dfl

#endif  // DFL_BASE_DISTRIBUTIONS_H_
