// dflctl set PATH=VALUE...: any value of the plan.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/fleet_plan.h"
#include "cli/plan_path.h"
#include "daemon/base/status_macros.h"

namespace dfl::cli {
namespace {

struct SetCommand {
  std::vector<std::string> changes;
  ApplyOptions options;
};

absl::Status Change(const std::vector<std::string>& changes,
                    core::RunPlan& plan) {
  for (const std::string& change : changes) {
    const size_t equals = change.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", change,
                       "\" is no PATH=VALUE; write it like "
                       "topology.kind=ring, see `dflctl get` for the paths"));
    }
    DFL_RETURN_IF_ERROR(SetPlanValue(change.substr(0, equals),
                                     change.substr(equals + 1), plan));
  }
  return absl::OkStatus();
}

}  // namespace

void AddSet(CLI::App& app, Chosen& chosen) {
  auto set = std::make_shared<SetCommand>();
  CLI::App* command =
      AddCommand(app, "set", "Change values of the plan by their paths",
                 "stop.steps=8000 --all gateways --wait");
  command
      ->add_option("SETTING", set->changes,
                   "PATH=VALUE, e.g. topology.kind=ring stop.steps=8000")
      ->required();
  AddApplyOptions(*command, set->options);
  command->callback([&chosen, set] {
    chosen = [set](Context& context) {
      return EditPlan(context, set->options, [&](core::RunPlan& plan) {
        return Change(set->changes, plan);
      });
    };
  });
}

}  // namespace dfl::cli
