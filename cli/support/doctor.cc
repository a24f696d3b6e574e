// dflctl doctor: what is amiss with daemons, their machines and the network,
// and what to do about it.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/support/network_findings.h"

namespace dfl::cli {
namespace {

using client::Finding;
using Kind = client::Finding::Kind;

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kOk:
      return "ok";
    case Kind::kWarning:
      return "warning";
    case Kind::kFault:
      return "fault";
    case Kind::kUnknown:
      break;
  }
  return "?";
}

// Of one daemon: its own findings, and how far its clock is from ours.
absl::StatusOr<std::vector<Finding>> Examine(client::ControlClient& daemon) {
  const int64_t sent = absl::ToUnixNanos(absl::Now());
  absl::StatusOr<client::Diagnosis> told = daemon.Diagnose();
  if (!told.ok()) return told.status();
  std::vector<Finding> findings = std::move(told->findings);
  findings.push_back(
      ClockFinding(told->unix_nanos, sent, absl::ToUnixNanos(absl::Now())));
  return findings;
}

Json ToJsonValue(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back(Json{{"check", finding.check},
                        {"kind", NameOf(finding.kind)},
                        {"text", finding.text},
                        {"remedy", finding.remedy}});
  }
  return list;
}

// Faults first, then warnings; of one kind in the order looked at.
void AddRows(std::vector<Finding> findings, bool all, const std::string& where,
             Table& table) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) {
                     return static_cast<int>(a.kind) > static_cast<int>(b.kind);
                   });
  for (const Finding& finding : findings) {
    if (!all && finding.kind == Kind::kOk) continue;
    table.Add({NameOf(finding.kind), where, finding.check, finding.text,
               finding.remedy});
  }
}

// Every answer with what was found, also where nobody answered.
struct Examined {
  std::string where;
  std::vector<Finding> findings;
};

ExitCode Doctor(Context& context, bool all) {
  const auto answers = context.AskAll<std::vector<Finding>>(Examine);
  std::vector<Examined> examined;
  for (const auto& answer : answers) {
    examined.push_back(
        {answer.target, answer.result.ok()
                            ? *answer.result
                            : std::vector<Finding>{
                                  UnreachableFinding(answer.result.status())}});
  }
  // Who is asked about the network: the first that answers.
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].result.ok()) continue;
    const auto survey = TakeSurvey(
        context.Client(i), {}, std::min(context.timeout(), absl::Seconds(5)));
    examined.push_back(
        {"network", survey.ok()
                        ? NetworkFindings(*survey)
                        : std::vector<Finding>{
                              {"members", Kind::kWarning,
                               std::string(survey.status().message()), ""}}});
    break;
  }
  Json json{{"examined", Json::array()}};
  Table table({"RESULT", "WHERE", "CHECK", "WHAT", "REMEDY"});
  int faults = 0;
  int warnings = 0;
  int good = 0;
  for (const Examined& one : examined) {
    json["examined"].push_back(
        Json{{"where", one.where}, {"findings", ToJsonValue(one.findings)}});
    for (const Finding& finding : one.findings) {
      faults += finding.kind == Kind::kFault ? 1 : 0;
      warnings += finding.kind == Kind::kWarning ? 1 : 0;
      good += finding.kind == Kind::kOk ? 1 : 0;
    }
    AddRows(one.findings, all || context.wide(), one.where, table);
  }
  json["faults"] = faults;
  json["warnings"] = warnings;
  context.Print(json, [&] {
    return absl::StrCat(table.empty() ? "" : table.ToString(), faults,
                        " faults, ", warnings, " warnings, ", good,
                        " checks are well\n");
  });
  if (faults == 0) return kOk;
  // Nobody answered: as of any other command.
  const ExitCode unreached = context.Conclude(answers);
  return unreached == kOk ? kFailed : unreached;
}

}  // namespace

void AddDoctor(CLI::App& app, Chosen& chosen) {
  auto all = std::make_shared<bool>(false);
  CLI::App* command = AddCommand(
      app, "doctor",
      "What is amiss with the targets, their machines and the network, each "
      "with its remedy; exit code 1 with a fault",
      "--show-all");
  command->add_flag("--show-all", *all, "Also what is well");
  command->callback([&chosen, all] {
    chosen = [all](Context& context) { return Doctor(context, *all); };
  });
}

}  // namespace dfl::cli
