// A scenario of dflsim in YAML, of few nodes: who asks for many has to wait.
#include <cstdint>

#include "daemon/base/check.h"
#include "daemon/config/values.h"
#include "daemon/config/yaml_tree.h"
#include "daemon/sim/scenario.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {
namespace {

bool HasFewNodes(absl::string_view bytes) {
  constexpr int64_t kFew = 200;
  const auto root = config::ParseYaml(bytes, "scenario.yaml");
  if (!root.ok()) return true;
  const config::YamlNode* network = root->Find("network");
  if (network == nullptr) return true;
  const config::YamlNode* nodes = network->Find("nodes");
  return nodes == nullptr ||
         config::ReadInteger(nodes->text).value_or(0) <= kFew;
}

}  // namespace

DFL_FUZZ_TARGET(scenario)(absl::string_view bytes) {
  if (!HasFewNodes(bytes)) return;
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
