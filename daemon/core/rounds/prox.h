// Proximal operators of the regularisers h that a composite problem f + h may
// carry. [DEPOSITUM] sec. II, Table I. With step alpha
//   prox(v) = argmin_z h(z) + (z - v)^2 / (2 alpha),
// coordinate by coordinate; soft(v, c) = sign(v) max(|v| - c, 0).
//
//   none   h = 0; the identity
//   l1     h = lambda |z|; soft(v, alpha lambda)
//   mcp    needs alpha < theta (else the minimiser is not unique)
//          |v| <= alpha lambda:  0
//          |v| <= theta lambda:  soft(v, alpha lambda) / (1 - alpha/theta)
//          beyond:               v
//   scad   needs a > 2 and alpha < a - 1
//          |v| <= (1 + alpha) lambda:  soft(v, alpha lambda)
//          |v| <= a lambda:            ((a-1) v - sign(v) a lambda alpha)
//                                      / (a - 1 - alpha)
//          beyond:                     v
#ifndef DFL_CORE_ROUNDS_PROX_H_
#define DFL_CORE_ROUNDS_PROX_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/core/algorithm/knobs.h"

namespace dfl::core {

enum class Regulariser { kNone, kL1, kMcp, kScad };

struct Prox {
  Regulariser h = Regulariser::kNone;
  double lambda = 0;  // weight of h, >= 0
  double theta = 0;   // mcp, > 0
  double a = 0;       // scad, > 2
};

// Whether `prox` has a unique proximal point for the step `alpha` > 0.
// Errors: INVALID_ARGUMENT "theta: 0.05 is not above the step 0.1; ...".
absl::Status CheckProx(const Prox& prox, double alpha);

// prox of one value. `prox` must pass CheckProx for `alpha`.
double ProximalPoint(const Prox& prox, double alpha, double v);

// x[l] <- prox(x[l]), computed in double and rounded once.
void ApplyProx(const Prox& prox, double alpha, absl::Span<float> x);

// h(x) = sum over l of h(x[l]):
//   l1    lambda |z|
//   mcp   lambda |z| - z^2/(2 theta) up to theta lambda, then theta lambda^2/2
//   scad  lambda |z| up to lambda; (2 a lambda |z| - z^2 - lambda^2)/(2(a-1))
//         up to a lambda; then lambda^2 (a+1)/2
double PenaltyOf(const Prox& prox, double z);
double Penalty(const Prox& prox, absl::Span<const float> x);

// The share of `x` that is exactly 0, in [0, 1]: the gauge "sparsity" of every
// algorithm with a proximal step. `x` is not empty.
double Sparsity(absl::Span<const float> x);

// The knobs prox, lambda, theta and a, as every algorithm with a proximal step
// declares them.
std::vector<KnobSpec> ProxKnobs();

// What those knobs say.
Prox ProxOf(const Knobs& knobs);

}  // namespace dfl::core

#endif  // DFL_CORE_ROUNDS_PROX_H_
