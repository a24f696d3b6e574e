// A run plan in YAML, as a person or another node gives it.
#include <string>

#include "daemon/base/check.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/config/yaml_tree.h"
#include "daemon/core/plan/member_spec.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {
namespace {

int DepthOf(const config::YamlNode& node) {
  int deepest = 0;
  for (const config::YamlNode& item : node.items) {
    deepest = std::max(deepest, 1 + DepthOf(item));
  }
  return deepest;
}

}  // namespace

// The canonical text of a plan is a plan, and its own canonical text.
DFL_FUZZ_TARGET(plan)(absl::string_view bytes) {
  const auto tree = config::ParseYaml(bytes, "plan.yaml");
  if (!tree.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(tree.status()));
    return;
  }
  DFL_CHECK(DepthOf(*tree) <= config::kMaxYamlDepth);
  const auto plan = config::ParsePlan(bytes, "plan.yaml");
  if (!plan.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(plan.status()));
    return;
  }
  DFL_CHECK(plan->members.size() <= core::kMostPlanMembers);
  const std::string written = config::WritePlan(*plan);
  const auto again = config::ParsePlan(written, "written.yaml");
  DFL_CHECK(again.ok());
  DFL_CHECK(config::WritePlan(*again) == written);
}

}  // namespace dfl::fuzz
