#include "daemon/sim/plan_changes.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/sim/variants.h"

namespace dfl::sim {
namespace {

using config::YamlNode;

absl::StatusOr<core::RunPlan> ReadChanged(
    const YamlNode& document, const core::RunPlan& before,
    const config::PlanSurroundings& around, const std::string& file) {
  DFL_ASSIGN_OR_RETURN(core::RunPlan plan,
                       config::ReadPlan(document, file, around));
  plan.version = before.version + 1;
  plan.run_id = before.run_id;
  plan.seed = before.seed;
  plan.model = before.model;
  plan.members = before.members;
  // Again with what was filled in.
  const absl::Status valid = core::ValidatePlan(plan);
  if (!valid.ok()) return Annotate(valid, file);
  return plan;
}

}  // namespace

std::vector<std::string> ChangeableKeys() {
  return {"algorithm",  "topology", "codec",    "batch_size",
          "evaluation", "stop",     "deadline", "nodes"};
}

void DerivePlans(const YamlNode& root, const core::RunPlan& first,
                 const config::PlanSurroundings& around,
                 config::YamlReader& yaml, std::vector<WrittenEvent>& events) {
  std::vector<WrittenEvent*> in_time;
  for (WrittenEvent& event : events) in_time.push_back(&event);
  std::stable_sort(in_time.begin(), in_time.end(),
                   [](const WrittenEvent* a, const WrittenEvent* b) {
                     return a->event.at < b->event.at;
                   });
  YamlNode document = root;
  core::RunPlan plan = first;
  for (WrittenEvent* written : in_time) {
    if (written->event.kind != NetworkEvent::Kind::kChange) continue;
    MergeSections(written->change, document);
    auto changed = ReadChanged(document, plan, around, yaml.file());
    if (!changed.ok()) {
      yaml.Add(written->line, written->path,
               absl::StrCat("the plan that it makes is wrong: ",
                            changed.status().message()));
      return;
    }
    plan = *std::move(changed);
    written->event.plan = std::make_shared<const core::RunPlan>(plan);
  }
}

}  // namespace dfl::sim
