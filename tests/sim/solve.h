// Linear equations, for least losses that are exact.
#ifndef DFL_TESTS_SIM_SOLVE_H_
#define DFL_TESTS_SIM_SOLVE_H_

#include <vector>

namespace dfl {

// a^-1 b by Gauss-Jordan with the largest pivot; `a` is [n x n] and regular.
std::vector<double> Solve(std::vector<std::vector<double>> a,
                          std::vector<double> b);

}  // namespace dfl

#endif  // DFL_TESTS_SIM_SOLVE_H_
