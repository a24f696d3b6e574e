// What the campaigns share.
#ifndef DFL_TESTS_SIM_CAMPAIGN_H_
#define DFL_TESTS_SIM_CAMPAIGN_H_

#include <cstdint>
#include <vector>

namespace dfl {

// The variable's number; `otherwise` without it.
int64_t FromEnvironment(const char* name, int64_t otherwise);

// a^-1 b by Gauss-Jordan with the largest pivot; `a` is [n x n] and regular.
std::vector<double> Solve(std::vector<std::vector<double>> a,
                          std::vector<double> b);

}  // namespace dfl

#endif  // DFL_TESTS_SIM_CAMPAIGN_H_
