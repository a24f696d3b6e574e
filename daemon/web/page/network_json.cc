#include "daemon/web/page/network_json.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/control/event_proto.h"
#include "daemon/core/plan/member_spec.h"
#include "daemon/core/plan/participants.h"
#include "daemon/page/graph_json.h"

namespace dfl::web {
namespace {

const char* NameOf(control::MemberState state) {
  switch (state) {
    case control::MemberState::kAlone:
      return "alone";
    case control::MemberState::kJoining:
      return "joining";
    case control::MemberState::kMember:
      return "member";
    case control::MemberState::kDegraded:
      return "degraded";
    case control::MemberState::kDraining:
      return "draining";
    case control::MemberState::kLeft:
      return "left";
    case control::MemberState::kDead:
      return "dead";
  }
  return "member";
}

const char* NameOf(core::Participation participation) {
  switch (participation) {
    case core::Participation::kTrain:
      return "train";
    case core::Participation::kMix:
      return "mix";
    case core::Participation::kObserve:
      return "observe";
  }
  return "train";
}

// "plan-adopted" for EVENT_KIND_PLAN_ADOPTED, as dflctl has it.
std::string KindOf(const dfl::control::v1::Event& event) {
  std::string name = dfl::control::v1::EventKind_Name(event.kind());
  constexpr absl::string_view kPrefix = "EVENT_KIND_";
  if (absl::StartsWith(name, kPrefix)) name.erase(0, kPrefix.size());
  absl::AsciiStrToLower(&name);
  return absl::StrReplaceAll(name, {{"_", "-"}});
}

double UnixMillis(absl::Time time) {
  return static_cast<double>(absl::ToUnixMillis(time));
}

// Those that a plan can have for members.
std::vector<core::MemberSpec> Present(const control::MemberTable& table) {
  std::vector<core::MemberSpec> present;
  for (const control::MemberInfo& member : table.members) {
    if (!member.present() || member.state == control::MemberState::kDraining) {
      continue;
    }
    core::MemberSpec spec;
    spec.node = member.node;
    spec.rows = member.rows;
    spec.dialable = !member.addresses.empty();
    spec.participation = member.participation;
    spec.labels = member.labels;
    present.push_back(std::move(spec));
  }
  return present;
}

}  // namespace

Json MembersJson(const control::MemberTable& table) {
  Json members = Json::array();
  for (const control::MemberInfo& member : table.members) {
    members.push_back(
        Json{{"node", member.node.name()},
             {"state", NameOf(member.state)},
             {"reason", member.reason},
             {"suspect", member.suspect},
             {"labels", member.labels},
             {"addresses", member.addresses},
             {"rows", member.rows},
             {"participation", NameOf(member.participation)},
             {"plan_version", member.plan_version},
             {"linked", member.linked},
             {"in_state_s", absl::ToDoubleSeconds(member.in_state)},
             {"starts", member.starts},
             {"self", member.self}});
  }
  return Json{{"membership_off", table.membership_off},
              {"members", std::move(members)}};
}

Json GraphJson(const control::PlanDocument& document, int64_t round,
               const control::MemberTable& table) {
  if (document.yaml.empty()) return page::NoGraphJson("There is no plan yet.");
  absl::StatusOr<core::RunPlan> plan =
      config::ParsePlan(document.yaml, "the plan");
  if (!plan.ok()) {
    return page::NoGraphJson(std::string(plan.status().message()));
  }
  core::ResolveParticipants(*plan, Present(table));
  const absl::StatusOr<core::CheckedPlan> checked =
      core::CheckPlan(*std::move(plan));
  if (!checked.ok()) {
    return page::NoGraphJson(std::string(checked.status().message()));
  }
  return page::GraphJson(*checked->plan, round, table.self);
}

Json PlansJson(const control::PlanDocument& newest,
               const std::vector<control::RecordInfo>& records) {
  struct Version {
    std::string author;
    double written_ms = 0;
    bool kept = false;
  };
  std::map<uint64_t, Version> versions;
  for (const uint64_t version : newest.kept_versions) {
    versions[version].kept = true;
  }
  if (newest.version > 0) versions[newest.version].kept = true;
  for (const control::RecordInfo& record : records) {
    if (record.kind != "plan") continue;
    Version& version = versions[record.counter];
    // Of two edits of one version the one that counts.
    if (!version.author.empty() && !record.current) continue;
    version.author = record.author;
    version.written_ms = UnixMillis(record.signed_at);
  }
  Json list = Json::array();
  for (const auto& [number, version] : versions) {
    list.push_back(Json{{"version", number},
                        {"author", version.author},
                        {"written_unix_ms", version.written_ms},
                        {"kept", version.kept}});
  }
  return Json{{"version", newest.version},
              {"version_in_force", newest.version_in_force},
              {"run_id", newest.run_id},
              {"versions", std::move(list)}};
}

Json PlanJson(const control::PlanDocument& plan) {
  const bool whole = plan.yaml.size() <= kMostPlanBytes;
  return Json{{"version", plan.version},
              {"yaml", whole ? plan.yaml : plan.yaml.substr(0, kMostPlanBytes)},
              {"whole", whole}};
}

Json EventsJson(const control::KeptEvents& kept, int64_t from) {
  Json events = Json::array();
  for (size_t i = 0; i < kept.events.size(); ++i) {
    const int64_t number = kept.forgotten + static_cast<int64_t>(i);
    if (number < from) continue;
    dfl::control::v1::Event event;
    control::ToProto(kept.events[i], event);
    events.push_back(Json{{"number", number},
                          {"unix_ms", UnixMillis(kept.events[i].at)},
                          {"kind", KindOf(event)},
                          {"step", event.step()},
                          {"peer", event.peer()},
                          {"text", event.text()}});
  }
  return Json{{"end", EventsEnd(kept)},
              {"forgotten", kept.forgotten},
              {"events", std::move(events)}};
}

}  // namespace dfl::web
