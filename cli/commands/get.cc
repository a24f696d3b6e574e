// dflctl get [PATH]: a value of the plan, or all of it.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/fleet_plan.h"
#include "cli/plan_path.h"

namespace dfl::cli {
namespace {

ExitCode Get(Context& context, const std::string& path) {
  FleetPlan fleet;
  const ExitCode read = ReadExistingPlan(context, fleet);
  if (read != kOk) return read;
  const absl::StatusOr<Json> value = PlanValue(*fleet.plan, path);
  if (!value.ok()) {
    context.Fail(value.status());
    return absl::IsNotFound(value.status()) ? kUsage : kFailed;
  }
  const Json json{
      {"path", path}, {"plan_version", fleet.plan->version}, {"value", *value}};
  context.Print(json, [&] {
    return value->is_string() ? absl::StrCat(value->get<std::string>(), "\n")
                              : ToYaml(*value);
  });
  return context.Conclude(fleet.answers);
}

}  // namespace

void AddGet(CLI::App& app, Chosen& chosen) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = AddCommand(
      app, "get", "A value of the newest plan by its path, or all of it",
      "topology.kind");
  command->add_option("PATH", *path, "e.g. topology.kind; nothing: all");
  command->callback([&chosen, path] {
    chosen = [path](Context& context) { return Get(context, *path); };
  });
}

}  // namespace dfl::cli
