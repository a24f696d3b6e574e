// A scenario of dflsim in YAML.
#include "daemon/base/check.h"
#include "daemon/sim/scenario.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {

DFL_FUZZ_TARGET(scenario)(absl::string_view bytes) {
  const auto scenario = sim::ParseScenario(bytes, "scenario.yaml");
  if (!scenario.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(scenario.status()));
    return;
  }
  DFL_CHECK(scenario->plan.seed != 0);
  DFL_CHECK(scenario->metrics_every >= 1);
  DFL_CHECK(scenario->limit > absl::ZeroDuration());
  const auto members = static_cast<int64_t>(scenario->plan.members.size());
  for (const sim::PathSpec& path : scenario->paths) {
    DFL_CHECK(0 <= path.a && path.a < members);
    DFL_CHECK(0 <= path.b && path.b < members && path.a != path.b);
  }
}

}  // namespace dfl::fuzz
