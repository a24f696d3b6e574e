#include "cli/network/survey.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/context.h"
#include "cli/status_json.h"
#include "daemon/base/status_macros.h"
#include "daemon/records/record_content.h"

namespace dfl::cli {

const MemberReport* Survey::self() const {
  for (const MemberReport& report : members) {
    if (report.member.self) return &report;
  }
  return nullptr;
}

absl::StatusOr<Survey> TakeSurvey(client::ControlClient& daemon,
                                  const client::MemberSelection& selection,
                                  absl::Duration within,
                                  const std::function<bool()>& go_on) {
  DFL_ASSIGN_OR_RETURN(const client::MemberTable table,
                       daemon.Members(selection));
  Survey survey;
  survey.node = table.node;
  survey.membership_off = table.membership_off;
  std::map<std::string, MemberReport> reports;
  for (const client::Member& member : table.members) {
    MemberReport report;
    report.member = member;
    report.status = absl::UnavailableError(
        absl::StrCat("it is ", client::MemberStateName(member.state)));
    reports.insert_or_assign(member.node, std::move(report));
  }
  client::AskOptions options;
  options.selection = selection;
  options.within = within;
  DFL_RETURN_IF_ERROR(daemon.AskMembers(
      options,
      [&reports](const client::MemberAnswer& answer) {
        reports.insert_or_assign(
            answer.member.node,
            MemberReport{answer.member, answer.status, answer.age_seconds});
        return true;
      },
      [&go_on] { return go_on != nullptr && !go_on(); }));
  for (auto& [node, report] : reports) {
    survey.members.push_back(std::move(report));
  }
  return survey;
}

bool Failed(const MemberReport& report) {
  return report.member.present() && !report.status.ok();
}

std::vector<std::string> Failures(const Survey& survey) {
  std::vector<std::string> lines;
  for (const MemberReport& report : survey.members) {
    if (!Failed(report)) continue;
    const std::string text(report.status.status().message());
    const std::string begin = absl::StrCat(report.member.node, ": ");
    lines.push_back(absl::StrCat(begin, absl::StripPrefix(text, begin)));
  }
  return lines;
}

Json ToJsonValue(const client::Member& member) {
  Json labels = Json::object();
  for (const auto& [name, value] : member.labels) labels[name] = value;
  return Json{
      {"node", member.node},
      {"state", client::MemberStateName(member.state)},
      {"reason", member.reason.empty() ? Json() : Json(member.reason)},
      {"suspect", member.suspect},
      {"self", member.self},
      {"linked", member.linked},
      {"seconds_in_state", member.seconds_in_state},
      {"labels", std::move(labels)},
      {"addresses", member.addresses},
      {"rows", member.rows},
      {"participation", client::ParticipationName(member.participation)},
      {"plan_version", member.plan_version},
      {"plan_hash", member.plan_hash.empty() ? Json() : Json(member.plan_hash)},
      {"pace", member.pace},
      {"starts", member.starts}};
}

Json ToJsonValue(const MemberReport& report) {
  Json json = ToJsonValue(report.member);
  json["ok"] = report.status.ok();
  if (report.status.ok()) {
    json["age_seconds"] = report.age_seconds;
    json["status"] = ToJsonValue(*report.status);
  } else {
    json["error"] = Context::ErrorJson(report.status.status());
  }
  return json;
}

std::string PlanHashOf(const std::string& yaml) {
  return absl::StrFormat("%016x", records::PlanMark(yaml));
}

std::string StateText(const client::Member& member) {
  return member.suspect && member.present()
             ? "suspect"
             : client::MemberStateName(member.state);
}

std::string LabelsText(const client::Member& member) {
  if (member.labels.empty()) return "-";
  return absl::StrJoin(member.labels, ", ", absl::PairFormatter("="));
}

std::string AgeText(const MemberReport& report) {
  if (!report.status.ok()) return "-";
  return HumanSeconds(std::floor(std::max(0.0, report.age_seconds)));
}

}  // namespace dfl::cli
