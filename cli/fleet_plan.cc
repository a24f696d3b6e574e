#include "cli/fleet_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/apply_report.h"
#include "cli/diff.h"
#include "cli/fleet_data.h"
#include "cli/network/present.h"
#include "cli/plan_wait.h"
#include "cli/signing.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/console/topology_text.h"
#include "daemon/core/plan/plan_warnings.h"
#include "daemon/records/record_content.h"
#include "daemon/threads/steady_cond_var.h"
#include "daemon/tls/identity.h"

namespace dfl::cli {
namespace {

// A person's yes, when one sits at a terminal.
bool Confirmed(Context& context) {
  Io& io = context.io();
  if (!io.in_is_terminal || !io.err_is_terminal) return true;
  io.err << "Apply this to " << context.targets().size()
         << (context.targets().size() == 1 ? " daemon" : " daemons")
         << "? [y/N] " << std::flush;
  std::string line;
  std::getline(io.in, line);
  const std::string answer =
      absl::AsciiStrToLower(absl::StripAsciiWhitespace(line));
  return answer == "y" || answer == "yes";
}

void ShowDiff(Context& context, const std::string& before,
              const std::string& next) {
  const bool color = context.color() && context.io().err_is_terminal;
  context.io().err << LineDiff(before, next, color);
}

// `checked` under another version: its graph stays the same.
void SetVersion(uint64_t version, core::CheckedPlan& checked) {
  core::RunPlan plan = *checked.plan;
  plan.version = version;
  checked.plan = std::make_shared<const core::RunPlan>(std::move(plan));
}

void SetData(core::DataSection data, core::CheckedPlan& checked) {
  core::RunPlan plan = *checked.plan;
  plan.data = std::move(data);
  checked.plan = std::make_shared<const core::RunPlan>(std::move(plan));
}

absl::StatusOr<core::RunPlan> Read(const Answer<client::PlanDocument>& answer) {
  return config::ParsePlan(answer.result->yaml,
                           absl::StrCat("plan of ", answer.target));
}

// Whether `other` is `plan`, but for what each states of the data, since each
// was applied by itself. `plan` then states what either does.
bool MergeInto(core::RunPlan other, core::RunPlan& plan) {
  const std::optional<core::DataSection> data = Merged(plan.data, other.data);
  if (!data.has_value()) return false;
  core::RunPlan mine = plan;
  mine.data = other.data = {};
  if (config::WritePlan(mine) != config::WritePlan(other)) return false;
  plan.data = *data;
  return true;
}

// Sets plan and conflict from the answers.
absl::Status TakeNewest(FleetPlan& fleet) {
  const Answer<client::PlanDocument>* newest = nullptr;
  for (const auto& answer : fleet.answers) {
    if (!answer.result.ok() || answer.result->version == 0) continue;
    if (newest == nullptr || answer.result->version > newest->result->version) {
      newest = &answer;
    }
  }
  if (newest == nullptr) return absl::OkStatus();
  DFL_ASSIGN_OR_RETURN(fleet.plan, Read(*newest));
  for (const auto& answer : fleet.answers) {
    if (!answer.result.ok()) continue;
    const client::PlanDocument& document = *answer.result;
    if (document.version != newest->result->version ||
        document.yaml == newest->result->yaml) {
      continue;
    }
    DFL_ASSIGN_OR_RETURN(core::RunPlan other, Read(answer));
    fleet.merged = MergeInto(std::move(other), *fleet.plan);
    if (fleet.merged) continue;
    fleet.conflict = absl::AbortedError(absl::StrCat(
        newest->target, " and ", answer.target,
        " hold different plans of version ", document.version,
        ": each was changed by itself; see both with `dflctl plan show "
        "--target ...`, and give one of them to all with `dflctl plan apply "
        "FILE --replace`"));
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

// Whether `next` may mean something else than the plan in force.
bool MayMeanElse(const FleetPlan& fleet, const core::RunPlan& next,
                 bool from_file) {
  if (!fleet.plan.has_value() || !fleet.conflict.ok() || fleet.merged) {
    return true;
  }
  const core::RunPlan& held = *fleet.plan;
  const auto same_member = [](const core::MemberSpec& a,
                              const core::MemberSpec& b) {
    return a.node == b.node;
  };
  return (from_file && IsOpen(next.data)) || !(next.model == held.model) ||
         !(next.data == held.data) || next.run_id != held.run_id ||
         !(next.participants == held.participants) ||
         !std::equal(next.members.begin(), next.members.end(),
                     held.members.begin(), held.members.end(), same_member);
}

// What was fixed for another model is fixed anew.
void DropFormerModel(const core::RunPlan& held, core::RunPlan& next) {
  if (next.model == held.model) return;
  if (next.data == held.data) {
    next.data = {};
    next.data = KeepFixed(next, held.data, held.model);
  } else if (next.data.model == held.data.model) {
    next.data.model.clear();
  }
}

// Wants all nodes to train, by an order that is brought to every target that
// took the plan.
absl::Status StartAll(Context& context, const Signer& signer,
                      const std::string& run_id,
                      std::vector<Answer<client::ApplyPlanResult>>& answers) {
  records::PhaseOrder order;
  order.phase = runtime::DesiredPhase::kTraining;
  order.run_id = run_id;
  const records::RecordKind kind = records::RecordKind::kPhase;
  DFL_ASSIGN_OR_RETURN(const std::string record,
                       signer.Sign(kind, "", signer.Highest(kind, "") + 1,
                                   records::ToContent(order)));
  std::map<std::string, Answer<client::ApplyPlanResult>*> took;
  for (auto& answer : answers) {
    if (answer.result.ok()) took[answer.target] = &answer;
  }
  const auto put = context.AskAll<client::PutRecordResult>(
      [&](client::ControlClient& daemon)
          -> absl::StatusOr<client::PutRecordResult> {
        if (took.count(daemon.target()) == 0) return client::PutRecordResult();
        return daemon.PutRecord(record);
      });
  for (const auto& answer : put) {
    if (answer.result.ok()) continue;
    took.at(answer.target)->result =
        Annotate(answer.result.status(),
                 "the plan is taken, but the order to train is not");
  }
  return absl::OkStatus();
}

std::vector<std::string> Reached(const FleetPlan& fleet) {
  std::vector<std::string> targets;
  for (const auto& answer : fleet.answers) {
    if (answer.result.ok()) targets.push_back(answer.target);
  }
  return targets;
}

}  // namespace

ExitCode ReadFleetPlan(Context& context, FleetPlan& fleet,
                       bool conflict_is_fine) {
  fleet.answers = context.AskAll<client::PlanDocument>(
      [](client::ControlClient& daemon) { return daemon.Plan(); });
  if (std::none_of(fleet.answers.begin(), fleet.answers.end(),
                   [](const auto& answer) { return answer.result.ok(); })) {
    context.Print(Context::TargetsJson<client::PlanDocument>(
                      fleet.answers, [](const client::PlanDocument&, Json&) {}),
                  [] { return std::string(); });
    return context.Conclude(fleet.answers);
  }
  const absl::Status taken = TakeNewest(fleet);
  if (!taken.ok()) return context.Fail(taken);
  if (conflict_is_fine || fleet.conflict.ok()) return kOk;
  return context.Fail(fleet.conflict);
}

ExitCode ReadExistingPlan(Context& context, FleetPlan& fleet) {
  const ExitCode read = ReadFleetPlan(context, fleet);
  if (read != kOk || fleet.plan.has_value()) return read;
  return context.Fail(absl::FailedPreconditionError(
      "no plan yet: write one (plan.example.yaml is a commented sample) and "
      "apply it with `dflctl plan apply FILE`"));
}

void AddApplyOptions(CLI::App& command, ApplyOptions& options) {
  command.add_flag("--dry-run", options.dry_run,
                   "Only have it checked by the daemons, and show what it "
                   "means");
  command.add_flag("--start", options.start,
                   "Then all nodes of the network train");
  command.add_flag("--wait", options.wait,
                   "Until every member that is there has it in force");
  command.add_option("--wait-timeout", options.wait_timeout, "Of --wait")
      ->capture_default_str();
  command.add_flag("-y,--yes", options.yes, "Ask nothing");
}

ExitCode ApplyToFleet(Context& context, const FleetPlan& fleet,
                      core::CheckedPlan next, const ApplyOptions& options,
                      bool from_file) {
  absl::Duration wait_timeout;
  if (!absl::ParseDuration(options.wait_timeout, &wait_timeout) ||
      wait_timeout <= absl::ZeroDuration()) {
    return context.Usage(absl::InvalidArgumentError(
        absl::StrCat("--wait-timeout: \"", options.wait_timeout,
                     "\" is no time above zero; allowed: 30s, 2m, ...")));
  }
  std::optional<Signer> signer;
  if (!options.dry_run) {
    absl::StatusOr<Signer> found = Signer::ForTargets(context);
    if (!found.ok()) return context.Fail(found.status());
    signer = *std::move(found);
  }
  std::map<std::string, absl::Status> refused;
  if (MayMeanElse(fleet, *next.plan, from_file)) {
    absl::StatusOr<FleetData> data =
        FixData(context, *next.plan, Reached(fleet));
    if (!data.ok()) return context.Fail(data.status());
    refused = std::move(data->refused);
    SetData(std::move(data->section), next);
  }
  const uint64_t held_version =
      fleet.plan.has_value() ? fleet.plan->version : 0;
  // A plan that no target could take up has used its version all the same.
  const uint64_t highest = std::max(
      held_version,
      signer.has_value() ? signer->Highest(records::RecordKind::kPlan, "") : 0);
  SetVersion(held_version, next);
  const std::string before =
      fleet.plan.has_value() ? config::WritePlan(*fleet.plan) : "";
  std::string text = config::WritePlan(*next.plan);
  const bool changed = !fleet.conflict.ok() || fleet.merged || text != before ||
                       highest > held_version;
  if (changed) {
    SetVersion(highest + 1, next);
    text = config::WritePlan(*next.plan);
    ShowDiff(context, before, text);
    context.Say(console::TopologyLine(next));
  } else {
    context.Say(absl::StrCat("nothing changes in plan version ", highest));
  }
  for (const std::string& warning : core::PlanWarnings(next)) {
    context.Warn(warning);
  }
  WarnOfMembers(context, next);
  if (from_file && changed && !options.dry_run && !options.yes &&
      !Confirmed(context)) {
    context.Say("nothing was applied");
    return kFailed;
  }

  client::ApplyPlanOptions apply;
  if (signer.has_value()) {
    absl::StatusOr<std::string> record =
        signer->Sign(records::RecordKind::kPlan, "", next.plan->version, text);
    if (!record.ok()) return context.Fail(record.status());
    apply.record = *std::move(record);
    if (signer->secured()) context.Say(signer->Says());
  } else {
    apply.yaml = text;
  }
  apply.dry_run = options.dry_run;
  std::map<std::string, const Answer<client::PlanDocument>*> held;
  for (const auto& answer : fleet.answers) held[answer.target] = &answer;
  auto answers = context.AskAll<client::ApplyPlanResult>(
      [&](client::ControlClient& daemon)
          -> absl::StatusOr<client::ApplyPlanResult> {
        const Answer<client::PlanDocument>& before = *held.at(daemon.target());
        if (!before.result.ok()) return before.result.status();
        const auto why = refused.find(daemon.target());
        if (why != refused.end()) return why->second;
        client::ApplyPlanOptions mine = apply;
        mine.expected_version = before.result->version;
        return daemon.ApplyPlan(mine);
      });
  if (options.start && signer.has_value()) {
    const absl::Status started =
        StartAll(context, *signer, next.plan->run_id, answers);
    if (!started.ok()) return context.Fail(started);
  }
  std::optional<Adoption> adoption;
  if (options.wait && !options.dry_run) {
    adoption = WaitAdopted(context, wait_timeout,
                           {next.plan->version, std::move(text)}, answers);
  }
  ReportApplied(context, answers, options.dry_run, adoption);
  const ExitCode applied = context.Conclude(answers);
  const ExitCode adopted =
      adoption.has_value() ? ConcludeAdoption(context, *adoption) : kOk;
  const bool partly = applied == kTimeout && adopted == kPartlyDone;
  return applied == kOk || partly ? adopted : applied;
}

ExitCode EditPlan(Context& context, const ApplyOptions& options,
                  const std::function<absl::Status(core::RunPlan&)>& edit) {
  FleetPlan fleet;
  const ExitCode read = ReadExistingPlan(context, fleet);
  if (read != kOk) return read;
  core::RunPlan next = *fleet.plan;
  const absl::Status edited = edit(next);
  if (absl::IsInvalidArgument(edited)) return context.Usage(edited);
  if (!edited.ok()) return context.Fail(edited);
  DropFormerModel(*fleet.plan, next);
  absl::StatusOr<core::CheckedPlan> checked = core::CheckPlan(std::move(next));
  if (!checked.ok()) return context.Fail(checked.status());
  return ApplyToFleet(context, fleet, *std::move(checked), options);
}

}  // namespace dfl::cli
