// The least value of the mean of analytic problems, for tests: f* exactly, as
// far as float32 parameters can tell.
#ifndef DFL_TESTS_SIM_OPTIMUM_H_
#define DFL_TESTS_SIM_OPTIMUM_H_

#include <memory>
#include <vector>

#include "daemon/simports/problems.h"

namespace dfl::sim {

struct Optimum {
  double loss = 0;        // f* = min of (1/m) sum f_i
  double gradient = 0;    // the norm of its gradient there
  double smoothness = 0;  // largest eigenvalue of any f_i's Hessian at w = 0
};

// Newton's method with Hessians from differences of gradients and a step that
// is halved until f falls: exact for least squares, and to the last digits of a
// float for logistic and softmax regression. The problems are convex and of one
// n >= 1. O(n m rows n) an iteration.
using Problems = std::vector<std::unique_ptr<simports::Problem>>;
Optimum FindOptimum(const Problems& nodes);

}  // namespace dfl::sim

#endif  // DFL_TESTS_SIM_OPTIMUM_H_
