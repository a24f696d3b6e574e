// Scenario texts for tests.
#ifndef DFL_TESTS_UNIT_SIM_SCENARIOS_H_
#define DFL_TESTS_UNIT_SIM_SCENARIOS_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace dfl::sim {

// Eight nodes of [PaME] Example 1 on a ring, 120 steps of 10 ms; `network` is
// added to the section, each line with two blanks before it.
inline std::string SmallScenario(absl::string_view network = "",
                                 absl::string_view algorithm =
                                     "{name: pame, knobs: {nu: 0.5, p: 0.5, "
                                     "kappa: [2, 4], sigma0: 10}}") {
  return absl::StrCat(
      "seed: 3\n"
      "batch_size: 10\n"
      "algorithm: ",
      algorithm,
      "\n"
      "topology: {kind: ring}\n"
      "codec: {coordinates: random, values: fp32}\n"
      "stop: {steps: 120}\n"
      "network:\n"
      "  nodes: 8\n"
      "  problem: {kind: linear, n: 20, rows: 30}\n"
      "  metrics_every: 20\n",
      network);
}

}  // namespace dfl::sim

#endif  // DFL_TESTS_UNIT_SIM_SCENARIOS_H_
