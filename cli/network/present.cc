#include "cli/network/present.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/network/selection.h"
#include "daemon/base/names.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/plan/participants.h"

namespace dfl::cli {
namespace {

core::Participation ParticipationOf(const client::Member& member) {
  switch (member.participation) {
    case client::Participation::kMix:
      return core::Participation::kMix;
    case client::Participation::kObserve:
      return core::Participation::kObserve;
    case client::Participation::kTrain:
    case client::Participation::kUnknown:
      return core::Participation::kTrain;
  }
  return core::Participation::kTrain;
}

}  // namespace

std::vector<core::MemberSpec> PresentMembers(const client::MemberTable& table) {
  std::vector<core::MemberSpec> present;
  for (const client::Member& member : table.members) {
    if (!member.present() || member.state == client::MemberState::kDraining) {
      continue;
    }
    core::MemberSpec spec;
    spec.node = NodeId(member.node);
    spec.rows = member.rows;
    spec.dialable = !member.addresses.empty();
    spec.participation = ParticipationOf(member);
    spec.labels = member.labels;
    present.push_back(std::move(spec));
  }
  return present;
}

absl::StatusOr<client::MemberTable> ReadMembers(Context& context) {
  return AskOne<client::MemberTable>(
      context,
      [](client::ControlClient& daemon) { return daemon.Members({}); });
}

absl::Status ResolveMembers(Context& context, core::RunPlan& plan) {
  if (!core::FollowsView(plan)) return absl::OkStatus();
  DFL_ASSIGN_OR_RETURN(const client::MemberTable table, ReadMembers(context));
  core::ResolveParticipants(plan, PresentMembers(table));
  return absl::OkStatus();
}

void WarnOfMembers(Context& context, const core::CheckedPlan& plan) {
  const absl::StatusOr<client::MemberTable> table = ReadMembers(context);
  if (!table.ok() || table->membership_off) return;
  for (const std::string& warning :
       core::ViewWarnings(plan, PresentMembers(*table))) {
    context.Warn(warning);
  }
}

void WarnOfStranger(Context& context, const std::string& node) {
  const absl::StatusOr<client::MemberTable> table = ReadMembers(context);
  if (!table.ok() || table->membership_off) return;
  std::vector<std::string> names;
  for (const client::Member& member : table->members) {
    if (member.node == node) return;
    names.push_back(member.node);
  }
  const std::string nearest = NearestName(node, names);
  context.Warn(absl::StrCat(
      "--node: no member is called \"", node, "\" at the moment",
      nearest.empty() ? ""
                      : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

}  // namespace dfl::cli
