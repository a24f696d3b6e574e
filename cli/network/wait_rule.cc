#include "cli/network/wait_rule.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/names.h"
#include "daemon/base/status_macros.h"

namespace dfl::cli {
namespace {

absl::StatusOr<client::Phase> ParsePhase(absl::string_view text) {
  std::vector<std::string> known;
  for (int i = static_cast<int>(client::Phase::kIdle);
       i <= static_cast<int>(client::Phase::kFailed); ++i) {
    const auto phase = static_cast<client::Phase>(i);
    if (text == client::PhaseName(phase)) return phase;
    known.emplace_back(client::PhaseName(phase));
  }
  return UnknownNameError("--for phase", text, known);
}

absl::StatusOr<int64_t> ParseNumber(absl::string_view rule,
                                    absl::string_view text) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--for ", rule, ": \"", text, "\" is no whole number above 0"));
  }
  return number;
}

std::optional<Missing> MissingStatus(const WaitRule& rule,
                                     const MemberReport& report) {
  if (!report.status.ok()) {
    return Missing{
        report.member.node,
        absl::StrCat("does not answer: ", report.status.status().message())};
  }
  const client::NodeStatus& node = report.status->node;
  if (rule.kind == WaitRule::Kind::kPhase) {
    if (node.phase == rule.phase) return std::nullopt;
    return Missing{
        report.member.node,
        absl::StrCat("is ", client::PhaseName(node.phase),
                     node.phase_reason.empty() ? "" : ": ", node.phase_reason)};
  }
  if (node.step >= rule.number) return std::nullopt;
  return Missing{report.member.node, absl::StrCat("is at step ", node.step)};
}

std::optional<Missing> MissingPlan(const client::PlanDocument& plan,
                                   const client::Member& member) {
  // Of two documents of one version the hash tells.
  const bool other = member.plan_version == plan.version &&
                     member.plan_hash != PlanHashOf(plan.yaml);
  if (member.plan_version >= plan.version && !other) return std::nullopt;
  return Missing{
      member.node,
      absl::StrCat(
          other ? "has another plan of version " : "has plan version ",
          member.plan_version, " in force",
          member.reason.empty() ? "" : "; it is ",
          member.reason.empty() ? "" : client::MemberStateName(member.state),
          member.reason.empty() ? "" : ": ", member.reason)};
}

}  // namespace

absl::StatusOr<WaitRule> ParseWaitRule(absl::string_view text) {
  WaitRule rule;
  rule.text = std::string(text);
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "phase=")) {
    rule.kind = WaitRule::Kind::kPhase;
    DFL_ASSIGN_OR_RETURN(rule.phase, ParsePhase(rest));
    return rule;
  }
  if (absl::ConsumePrefix(&rest, "step>=")) {
    rule.kind = WaitRule::Kind::kStep;
    DFL_ASSIGN_OR_RETURN(rule.number, ParseNumber("step>=", rest));
    return rule;
  }
  if (absl::ConsumePrefix(&rest, "members>=")) {
    rule.kind = WaitRule::Kind::kMembers;
    DFL_ASSIGN_OR_RETURN(rule.number, ParseNumber("members>=", rest));
    return rule;
  }
  if (text == "plan=adopted") {
    rule.kind = WaitRule::Kind::kPlan;
    return rule;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--for: \"", text,
                   "\" is no condition; allowed: phase=finished or another "
                   "phase, \"step>=N\", \"members>=N\", plan=adopted"));
}

std::vector<Missing> Unmet(const WaitRule& rule, const Survey& survey,
                           const client::PlanDocument& plan) {
  std::vector<const MemberReport*> there;
  std::vector<const MemberReport*> draining;
  for (const MemberReport& report : survey.members) {
    if (!report.member.present()) continue;
    // Who drains takes no part; it is counted where members are.
    const bool drains = report.member.state == client::MemberState::kDraining;
    (drains && rule.kind != WaitRule::Kind::kMembers ? draining : there)
        .push_back(&report);
  }
  // Where none but those are meant, it is they that are waited for.
  if (there.empty()) there.swap(draining);
  const auto count = static_cast<int64_t>(there.size());
  if (rule.kind == WaitRule::Kind::kMembers) {
    if (count >= rule.number) return {};
    return {
        {"", absl::StrCat(count, " of ", rule.number, " members are there")}};
  }
  if (rule.kind == WaitRule::Kind::kPlan && plan.version == 0) {
    return {{"", absl::StrCat(survey.node, " holds no plan yet")}};
  }
  if (there.empty()) return {{"", "none of the members meant is there"}};
  std::vector<Missing> missing;
  for (const MemberReport* report : there) {
    std::optional<Missing> one = rule.kind == WaitRule::Kind::kPlan
                                     ? MissingPlan(plan, report->member)
                                     : MissingStatus(rule, *report);
    if (one.has_value()) missing.push_back(*std::move(one));
  }
  return missing;
}

}  // namespace dfl::cli
