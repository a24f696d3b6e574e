#include "daemon/control/member_proto.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "daemon/control/status_proto.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;

pb::MemberState ToProto(MemberState state) {
  switch (state) {
    case MemberState::kAlone:
      return pb::MEMBER_STATE_ALONE;
    case MemberState::kJoining:
      return pb::MEMBER_STATE_JOINING;
    case MemberState::kMember:
      return pb::MEMBER_STATE_MEMBER;
    case MemberState::kDegraded:
      return pb::MEMBER_STATE_DEGRADED;
    case MemberState::kDraining:
      return pb::MEMBER_STATE_DRAINING;
    case MemberState::kLeft:
      return pb::MEMBER_STATE_LEFT;
    case MemberState::kDead:
      return pb::MEMBER_STATE_DEAD;
  }
  return pb::MEMBER_STATE_UNSPECIFIED;
}

pb::Participation ToProto(core::Participation participation) {
  switch (participation) {
    case core::Participation::kTrain:
      return pb::PARTICIPATION_TRAIN;
    case core::Participation::kMix:
      return pb::PARTICIPATION_MIX;
    case core::Participation::kObserve:
      return pb::PARTICIPATION_OBSERVE;
  }
  return pb::PARTICIPATION_UNSPECIFIED;
}

double Seconds(absl::Duration time) {
  return std::max(absl::ToDoubleSeconds(time), 0.0);
}

}  // namespace

void ToProto(const MemberInfo& member, pb::Member& out) {
  out.set_node(member.node.name());
  out.set_state(ToProto(member.state));
  out.set_reason(member.reason);
  out.set_suspect(member.suspect);
  for (const auto& [key, value] : member.labels) {
    (*out.mutable_labels())[key] = value;
  }
  for (const std::string& address : member.addresses) {
    out.add_addresses(address);
  }
  out.set_rows(member.rows);
  out.set_participation(ToProto(member.participation));
  out.set_plan_version(member.plan_version);
  if (member.plan_hash != 0) {
    out.set_plan_hash(absl::StrFormat("%016x", member.plan_hash));
  }
  out.set_linked(member.linked);
  out.set_seconds_in_state(Seconds(member.in_state));
  out.set_pace(member.pace);
  out.set_starts(member.starts);
  out.set_self(member.self);
}

std::string MemberReport(const DaemonStatus& status, absl::Duration age) {
  pb::MemberReport report;
  ToProto(status, *report.mutable_status());
  report.set_age_seconds(Seconds(age));
  return report.SerializeAsString();
}

}  // namespace dfl::control
