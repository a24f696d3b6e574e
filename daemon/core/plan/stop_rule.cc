#include "daemon/core/plan/stop_rule.h"

#include "absl/strings/str_cat.h"

namespace dfl::core {

std::string MetLimit(const StopRule& stop, const Pace& pace, double epochs) {
  // A tenth of an epoch of 30 steps is 3 steps and not 4.
  constexpr double kRounding = 1e-9;
  if (stop.steps > 0 && pace.steps >= stop.steps) {
    return absl::StrCat(stop.steps, " steps are done");
  }
  if (stop.rounds > 0 && pace.rounds >= stop.rounds) {
    return absl::StrCat(stop.rounds, " rounds are done");
  }
  if (stop.epochs > 0 && epochs >= stop.epochs * (1 - kRounding)) {
    return absl::StrCat(stop.epochs, " epochs are done");
  }
  return "";
}

}  // namespace dfl::core
