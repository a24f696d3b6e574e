// What the algorithms' knobs are drawn from in the campaign: such that they
// converge on its small problems in a few dozen steps.
#ifndef DFL_TESTS_SIM_FAULT_KNOBS_H_
#define DFL_TESTS_SIM_FAULT_KNOBS_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/rng.h"
#include "tests/sim/fault_schedule.h"

namespace dfl::sim {

// Draws what the knobs of one schedule are.
struct KnobDraw {
  Rng& rng;
  const CampaignNetwork& network;
  double step;  // 1/L, L the largest curvature of any node's f_i

  double Between(double low, double high) {
    return low + (high - low) * rng.Uniform();
  }
  int64_t From(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(
                     rng.Below(static_cast<uint64_t>(high - low + 1)));
  }
  // "name: x" with x from [low, high] / L.
  std::string Step(const char* name, double low, double high) {
    return absl::StrFormat("%s: %.6g", name, step * Between(low, high));
  }
  // "name: x" with an integer x from [low, high].
  std::string Count(const char* name, int64_t low, int64_t high) {
    return absl::StrCat(name, ": ", From(low, high));
  }
};

struct Drawing {
  const char* algorithm;
  std::string (*knobs)(KnobDraw& draw);
};

// How `algorithm` is drawn; null: nobody has said yet.
const Drawing* FindDrawing(const std::string& algorithm);

}  // namespace dfl::sim

#endif  // DFL_TESTS_SIM_FAULT_KNOBS_H_
