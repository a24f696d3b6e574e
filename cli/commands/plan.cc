// dflctl plan validate|show|apply; plan_history.cc has the others.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/commands.h"
#include "cli/fleet_data.h"
#include "cli/fleet_plan.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/config/run_identity.h"
#include "daemon/console/topology_text.h"
#include "daemon/core/plan/plan_warnings.h"

namespace dfl::cli {
namespace {

struct ApplyCommand {
  std::string file;
  bool new_run = false;
  bool replace = false;
  ApplyOptions options;
};

// "-" is stdin.
absl::StatusOr<core::CheckedPlan> ReadPlanFile(Context& context,
                                               const std::string& file) {
  const auto as_it_is = [](core::RunPlan&) {};
  std::string text;
  if (file == "-") {
    text.assign(std::istreambuf_iterator<char>(context.io().in), {});
    return config::ParseCheckedPlan(text, "stdin", as_it_is);
  }
  DFL_ASSIGN_OR_RETURN(text, config::ReadTextFile(file, config::kMaxPlanBytes));
  return config::ParseCheckedPlan(text, file, as_it_is);
}

ExitCode Validate(Context& context, const std::string& file) {
  const absl::StatusOr<core::CheckedPlan> plan = ReadPlanFile(context, file);
  const std::vector<std::string> warnings =
      plan.ok() ? core::PlanWarnings(*plan) : std::vector<std::string>();
  Json json{{"file", file},
            {"valid", plan.ok()},
            {"errors", Json::array()},
            {"warnings", warnings}};
  if (!plan.ok())
    json["errors"].push_back(std::string(plan.status().message()));
  context.Print(json, [&] {
    return plan.ok() ? absl::StrCat(file, ": valid\n") : std::string();
  });
  const std::string graph =
      plan.ok() ? console::TopologyLine(*plan) : std::string();
  if (!graph.empty()) context.Say(graph);
  for (const std::string& warning : warnings) context.Warn(warning);
  return plan.ok() ? kOk : context.Fail(plan.status());
}

// The document of a past version, as the first target that keeps it has it.
// A file gets the document as it is; a terminal, what it can show of it.
std::string ForPerson(Context& context, const std::string& yaml) {
  if (!context.io().out_is_terminal) return yaml;
  std::vector<std::string> lines = absl::StrSplit(yaml, '\n');
  for (std::string& line : lines) line = Printable(line);
  return absl::StrJoin(lines, "\n");
}

ExitCode ShowPast(Context& context, uint64_t version) {
  absl::Status failure;
  for (size_t i = 0; i < context.targets().size(); ++i) {
    const absl::StatusOr<client::PlanDocument> past =
        context.Client(i).PastPlan(version);
    if (!past.ok()) {
      failure = past.status();
      continue;
    }
    context.Print(Json{{"version", past->version},
                       {"run_id", past->run_id},
                       {"yaml", past->yaml}},
                  [&] { return ForPerson(context, past->yaml); });
    return kOk;
  }
  return context.Fail(failure);
}

ExitCode Show(Context& context, uint64_t version) {
  if (version != 0) return ShowPast(context, version);
  FleetPlan fleet;
  const ExitCode read = ReadFleetPlan(context, fleet, true);
  if (read != kOk) return read;
  context.Print(Context::TargetsJson<client::PlanDocument>(
                    fleet.answers,
                    [](const client::PlanDocument& plan, Json& entry) {
                      entry["version"] = plan.version;
                      entry["version_in_force"] = plan.version_in_force;
                      entry["run_id"] = plan.run_id;
                      entry["yaml"] = plan.yaml;
                    }),
                [&] {
                  return fleet.plan.has_value() ? config::WritePlan(*fleet.plan)
                                                : std::string();
                });
  if (!fleet.plan.has_value()) {
    context.Say("no plan yet: apply one with `dflctl plan apply FILE`");
  }
  for (const auto& answer : fleet.answers) {
    if (!answer.result.ok() || !fleet.plan.has_value()) continue;
    const client::PlanDocument& plan = *answer.result;
    if (plan.version != fleet.plan->version) {
      context.Warn(absl::StrCat(answer.target, " holds version ", plan.version,
                                ", the newest is ", fleet.plan->version));
    } else if (plan.version_in_force != plan.version) {
      context.Say(absl::StrCat(answer.target, ": version ", plan.version,
                               " waits for the next boundary"));
    }
  }
  if (!fleet.conflict.ok()) return context.Fail(fleet.conflict);
  return context.Conclude(fleet.answers);
}

// Of the run that follows all runs that targets are in.
uint64_t NextCounter(const FleetPlan& fleet) {
  uint64_t counter = 1;
  for (const auto& answer : fleet.answers) {
    if (!answer.result.ok()) continue;
    counter =
        std::max(counter, config::NextRunCounter(
                              {answer.result->run_id, answer.result->version}));
  }
  return counter;
}

// The identity that the document gets: that of the run that is there, or one
// that follows from the document, so that all nodes that are given it are in
// one run.
absl::Status Identify(const FleetPlan& fleet, bool new_run,
                      core::RunPlan& plan) {
  if (fleet.plan.has_value() && !new_run) {
    const core::RunPlan& held = *fleet.plan;
    if (plan.version != 0 && plan.version != held.version) {
      return absl::AbortedError(absl::StrCat(
          "the file was made from plan version ", plan.version,
          ", and the newest is ", held.version,
          ": somebody changed it meanwhile; see `dflctl plan show`, or remove "
          "`version` from the file to replace it"));
    }
    if (!plan.run_id.empty() && plan.run_id != held.run_id) {
      return absl::AbortedError(absl::StrCat(
          "the file is of run ", plan.run_id, ", and the nodes are in run ",
          held.run_id, "; give --new-run to end that one and begin another"));
    }
    if (plan.seed != 0 && plan.seed != held.seed) {
      return absl::FailedPreconditionError(absl::StrCat(
          "seed: ", plan.seed, " cannot replace ", held.seed,
          " while the run goes on; remove it, or give --new-run to begin "
          "another run"));
    }
    plan.run_id = held.run_id;
    plan.seed = held.seed;
    if (fleet.conflict.ok()) {
      plan.data = KeepFixed(plan, held.data, held.model);
    }
    return absl::OkStatus();
  }
  if (new_run) plan.run_id.clear();
  config::IdentifyNewRun(new_run ? NextCounter(fleet) : 1, plan);
  return absl::OkStatus();
}

// The same, with the identity in `read`. Another seed may mean another graph.
absl::StatusOr<core::CheckedPlan> Identified(const FleetPlan& fleet,
                                             bool new_run,
                                             core::CheckedPlan read) {
  core::RunPlan plan = *read.plan;
  DFL_RETURN_IF_ERROR(Identify(fleet, new_run, plan));
  if (plan.seed != read.plan->seed) return core::CheckPlan(std::move(plan));
  read.plan = std::make_shared<const core::RunPlan>(std::move(plan));
  return read;
}

ExitCode Apply(Context& context, const ApplyCommand& command) {
  absl::StatusOr<core::CheckedPlan> plan = ReadPlanFile(context, command.file);
  if (!plan.ok()) return context.Fail(plan.status());
  FleetPlan fleet;
  const ExitCode read =
      ReadFleetPlan(context, fleet, command.replace || command.new_run);
  if (read != kOk) return read;
  plan = Identified(fleet, command.new_run, *std::move(plan));
  if (!plan.ok()) return context.Fail(plan.status());
  return ApplyToFleet(context, fleet, *std::move(plan), command.options,
                      /*from_file=*/true);
}

}  // namespace

void AddPlan(CLI::App& app, Chosen& chosen) {
  CLI::App* noun =
      AddCommand(app, "plan", "The run plan: one document for all nodes",
                 "apply plan.yaml --all gateways");
  noun->require_subcommand(1);

  auto file = std::make_shared<std::string>();
  CLI::App* validate = AddCommand(
      *noun, "validate", "Check a plan file; needs no daemon", "plan.yaml");
  validate->add_option("FILE", *file, "A plan in YAML; - is stdin")->required();
  validate->callback([&chosen, file] {
    chosen = [file](Context& context) { return Validate(context, *file); };
  });

  auto version = std::make_shared<uint64_t>(0);
  CLI::App* show =
      AddCommand(*noun, "show", "The newest plan that the targets hold",
                 "--target gateway-07:7601");
  show->add_option("--version", *version,
                   "A past one, of `dflctl plan history`");
  show->callback([&chosen, version] {
    chosen = [version](Context& context) { return Show(context, *version); };
  });

  auto apply = std::make_shared<ApplyCommand>();
  CLI::App* command =
      AddCommand(*noun, "apply",
                 "Give a plan file to the network, after showing what changes",
                 "plan.yaml --start --wait");
  command->add_option("FILE", apply->file, "A plan in YAML; - is stdin")
      ->required();
  command->add_flag("--new-run", apply->new_run,
                    "Begin another run instead of changing the one there is");
  command->add_flag("--replace", apply->replace,
                    "Also when the targets hold different plans of one "
                    "version");
  AddApplyOptions(*command, apply->options);
  command->callback([&chosen, apply] {
    chosen = [apply](Context& context) { return Apply(context, *apply); };
  });
  AddPlanHistory(*noun, chosen);
}

}  // namespace dfl::cli
