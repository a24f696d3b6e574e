// dflctl plan history|rollback|diff: past plans.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/diff.h"
#include "cli/fleet_plan.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/core/plan/check_plan.h"

namespace dfl::cli {
namespace {

// A version of the plan, as one target knows it.
struct PastPlan {
  uint64_t version = 0;
  std::string author;   // "": no record names one
  std::string written;  // by the author's clock; "": not told
  bool newest = false;
  bool kept = false;  // its document is still there
};

std::string TimeText(int64_t unix_nanos) {
  if (unix_nanos == 0) return "";
  return absl::FormatTime(absl::RFC3339_sec, absl::FromUnixNanos(unix_nanos),
                          absl::UTCTimeZone());
}

absl::StatusOr<std::vector<PastPlan>> HistoryOf(client::ControlClient& daemon) {
  DFL_ASSIGN_OR_RETURN(const client::PlanDocument newest, daemon.Plan());
  DFL_ASSIGN_OR_RETURN(const std::vector<client::RecordInfo> records,
                       daemon.ListRecords());
  std::map<uint64_t, PastPlan> plans;
  for (const client::RecordInfo& record : records) {
    if (record.kind != "plan") continue;
    PastPlan& plan = plans[record.counter];
    // Of two edits that share a version, the one that counts is shown.
    if (!plan.author.empty() && !record.current) continue;
    plan.author = record.author;
    plan.written = TimeText(record.unix_nanos);
  }
  for (const uint64_t version : newest.kept_versions) {
    plans[version].kept = true;
  }
  if (newest.version != 0) {
    plans[newest.version].newest = true;
    plans[newest.version].kept = true;
  }
  std::vector<PastPlan> history;
  for (auto& [version, plan] : plans) {
    plan.version = version;
    history.push_back(std::move(plan));
  }
  return history;
}

ExitCode History(Context& context) {
  using Plans = std::vector<PastPlan>;
  const auto answers = context.AskAll<Plans>(
      [](client::ControlClient& daemon) { return HistoryOf(daemon); });
  const auto text = [](const std::string& value) {
    return value.empty() ? Json(nullptr) : Json(value);
  };
  context.Print(
      Context::TargetsJson<Plans>(answers,
                                  [&](const Plans& plans, Json& entry) {
                                    entry["plans"] = Json::array();
                                    for (const PastPlan& plan : plans) {
                                      entry["plans"].push_back(
                                          Json{{"version", plan.version},
                                               {"newest", plan.newest},
                                               {"kept", plan.kept},
                                               {"author", text(plan.author)},
                                               {"time", text(plan.written)}});
                                    }
                                  }),
      [&] {
        std::string out;
        for (const auto& answer : answers) {
          if (!answer.result.ok()) continue;
          if (!out.empty()) out += "\n";
          if (answers.size() > 1) absl::StrAppend(&out, answer.target, ":\n");
          Table table({">VERSION", "STATE", "DOCUMENT", "AUTHOR", "TIME"});
          for (const PastPlan& plan : *answer.result) {
            table.Add({absl::StrCat(plan.version),
                       plan.newest ? "newest" : "replaced",
                       plan.kept ? "kept" : "gone",
                       plan.author.empty() ? "-" : Printable(plan.author),
                       plan.written.empty() ? "-" : plan.written});
          }
          out += table.ToString();
        }
        return out;
      });
  return context.Conclude(answers);
}

// The document of a version, from the first target that keeps it.
absl::StatusOr<client::PlanDocument> Fetch(Context& context, uint64_t version) {
  absl::Status failure;
  for (size_t i = 0; i < context.targets().size(); ++i) {
    absl::StatusOr<client::PlanDocument> past =
        context.Client(i).PastPlan(version);
    if (past.ok()) return past;
    failure = past.status();
  }
  return Annotate(failure, absl::StrCat("plan version ", version));
}

// The newest version before `newest` that a target keeps.
absl::StatusOr<uint64_t> VersionBefore(const FleetPlan& fleet,
                                       uint64_t newest) {
  uint64_t before = 0;
  for (const auto& answer : fleet.answers) {
    if (!answer.result.ok()) continue;
    for (const uint64_t version : answer.result->kept_versions) {
      if (version < newest) before = std::max(before, version);
    }
  }
  if (before != 0) return before;
  return absl::FailedPreconditionError(
      absl::StrCat("no plan before version ", newest,
                   " is kept; see `dflctl plan history` for what there was"));
}

struct RollbackCommand {
  uint64_t version = 0;  // 0: the one before
  ApplyOptions options;
};

absl::StatusOr<core::CheckedPlan> PlanToBringBack(Context& context,
                                                  const FleetPlan& fleet,
                                                  uint64_t version) {
  const core::RunPlan& held = *fleet.plan;
  if (version == 0) {
    DFL_ASSIGN_OR_RETURN(version, VersionBefore(fleet, held.version));
  }
  DFL_ASSIGN_OR_RETURN(const client::PlanDocument past,
                       Fetch(context, version));
  DFL_ASSIGN_OR_RETURN(
      core::RunPlan plan,
      config::ParsePlan(past.yaml, absl::StrCat("plan version ", version)));
  if (plan.run_id != held.run_id) {
    return absl::FailedPreconditionError(absl::StrCat(
        "plan version ", version, " is of run ", plan.run_id,
        ", and the nodes are in run ", held.run_id,
        "; a rollback stays in its run: take the document with `dflctl plan "
        "show --version ",
        version,
        "`, and begin another run with `dflctl plan apply --new-run`"));
  }
  context.Say(absl::StrCat("brings back plan version ", version));
  return core::CheckPlan(std::move(plan));
}

ExitCode Rollback(Context& context, const RollbackCommand& command) {
  FleetPlan fleet;
  const ExitCode read = ReadExistingPlan(context, fleet);
  if (read != kOk) return read;
  absl::StatusOr<core::CheckedPlan> plan =
      PlanToBringBack(context, fleet, command.version);
  if (!plan.ok()) return context.Fail(plan.status());
  return ApplyToFleet(context, fleet, *std::move(plan), command.options,
                      /*from_file=*/true);
}

struct DiffCommand {
  std::string file;  // "": the newest plan
  uint64_t from = 0;
  uint64_t to = 0;
};

// In canonical form, without what an apply fills in where the file has none.
absl::StatusOr<std::string> FromFile(Context& context, const std::string& file,
                                     const core::RunPlan& held) {
  std::string text;
  if (file == "-") {
    text.assign(std::istreambuf_iterator<char>(context.io().in), {});
  } else {
    DFL_ASSIGN_OR_RETURN(text,
                         config::ReadTextFile(file, config::kMaxPlanBytes));
  }
  DFL_ASSIGN_OR_RETURN(core::RunPlan plan,
                       config::ParsePlan(text, file == "-" ? "stdin" : file));
  if (plan.version == 0) plan.version = held.version;
  if (plan.run_id.empty()) plan.run_id = held.run_id;
  if (plan.seed == 0) plan.seed = held.seed;
  return config::WritePlan(plan);
}

// What is compared: before, and after.
absl::StatusOr<std::pair<std::string, std::string>> Sides(
    Context& context, const FleetPlan& fleet, const DiffCommand& command) {
  const std::string newest = config::WritePlan(*fleet.plan);
  std::string before = newest;
  std::string after = newest;
  if (command.from != 0) {
    DFL_ASSIGN_OR_RETURN(const client::PlanDocument past,
                         Fetch(context, command.from));
    before = past.yaml;
  }
  if (!command.file.empty()) {
    DFL_ASSIGN_OR_RETURN(after, FromFile(context, command.file, *fleet.plan));
  } else if (command.to != 0) {
    DFL_ASSIGN_OR_RETURN(const client::PlanDocument past,
                         Fetch(context, command.to));
    after = past.yaml;
  }
  return std::pair(std::move(before), std::move(after));
}

ExitCode Diff(Context& context, const DiffCommand& command) {
  if (command.file.empty() && command.from == 0) {
    return context.Usage(absl::InvalidArgumentError(
        "name a FILE to compare the newest plan with, or --from VERSION"));
  }
  FleetPlan fleet;
  const ExitCode read = ReadExistingPlan(context, fleet);
  if (read != kOk) return read;
  const auto sides = Sides(context, fleet, command);
  if (!sides.ok()) return context.Fail(sides.status());
  const auto& [before, after] = *sides;
  context.Print(Json{{"changed", before != after},
                     {"before", before},
                     {"after", after},
                     {"diff", LineDiff(before, after, false)}},
                [&, &before = before, &after = after] {
                  return LineDiff(before, after, context.color());
                });
  if (before == after) context.Say("nothing differs");
  return kOk;
}

}  // namespace

void AddPlanHistory(CLI::App& noun, Chosen& chosen) {
  AddCommand(noun, "history",
             "Versions of the plan: whose they are, and whether the document "
             "is still there",
             "--target gateway-07:7601")
      ->callback([&chosen] { chosen = History; });

  auto rollback = std::make_shared<RollbackCommand>();
  CLI::App* command = AddCommand(
      noun, "rollback", "Bring a past plan back, as a new version", "3 --wait");
  command->add_option("VERSION", rollback->version,
                      "One of `dflctl plan history`; else the one before");
  AddApplyOptions(*command, rollback->options);
  command->callback([&chosen, rollback] {
    chosen = [rollback](Context& context) {
      return Rollback(context, *rollback);
    };
  });

  auto diff = std::make_shared<DiffCommand>();
  command = AddCommand(noun, "diff", "What two plans differ in, line by line",
                       "plan.yaml");
  CLI::Option* file = command->add_option(
      "FILE", diff->file,
      "A plan in YAML, to compare the newest one with; - is stdin");
  command->add_option("--from", diff->from,
                      "A past version, in place of the newest");
  command
      ->add_option("--to", diff->to, "A past version, in place of the newest")
      ->excludes(file);
  command->callback([&chosen, diff] {
    chosen = [diff](Context& context) { return Diff(context, *diff); };
  });
}

}  // namespace dfl::cli
