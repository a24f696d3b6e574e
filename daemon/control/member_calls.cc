#include "daemon/control/member_calls.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/control/event_proto.h"
#include "daemon/control/member_proto.h"
#include "daemon/control/member_selection.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;

absl::Duration PingTimeout(double seconds) {
  if (!(seconds > 0)) return absl::Seconds(2);
  return absl::Seconds(std::clamp(seconds, 0.01, 60.0));
}

// Of these kinds; none: of all.
absl::StatusOr<std::set<pb::EventKind>> WantedKinds(
    const pb::ListEventsRequest& request) {
  std::set<pb::EventKind> kinds;
  for (const int kind : request.kinds()) {
    if (!pb::EventKind_IsValid(kind) || kind == pb::EVENT_KIND_UNSPECIFIED) {
      return absl::InvalidArgumentError(
          absl::StrCat("kinds: ", kind, " is unknown; allowed are 1 to ",
                       static_cast<int>(pb::EventKind_MAX)));
    }
    kinds.insert(static_cast<pb::EventKind>(kind));
  }
  return kinds;
}

}  // namespace

MemberCalls::MemberCalls(Backend& backend, Answers& answers)
    : backend_(backend), answers_(answers) {}

Reactor* MemberCalls::ListMembers(const Call& call,
                                  const pb::ListMembersRequest* request,
                                  pb::ListMembersResponse* response) {
  const MemberTable table = backend_.Members();
  const auto selected = SelectMembers(table.members, request->selection());
  if (!selected.ok()) return Answers::Now(call, selected.status());
  response->set_node(table.self.name());
  response->set_membership_off(table.membership_off);
  for (const SelectedMember& chosen : *selected) {
    ToProto(chosen.member, *response->add_members());
  }
  return Answers::Now(call, absl::OkStatus());
}

Reactor* MemberCalls::PingMember(const Call& call,
                                 const pb::PingMemberRequest* request,
                                 pb::PingMemberResponse* response) {
  const absl::Status named = ValidateNodeName(request->node());
  if (!named.ok()) {
    return Answers::Now(call, absl::InvalidArgumentError(
                                  absl::StrCat("node: ", named.message())));
  }
  Reactor* reactor = call.context->DefaultReactor();
  auto later = answers_.Later(call, reactor, "");
  backend_.PingMember(NodeId(request->node()),
                      PingTimeout(request->timeout_seconds()),
                      [later, response](absl::StatusOr<MemberPing> ping) {
                        if (!later->Take()) return;
                        if (ping.ok()) {
                          response->set_round_trip_seconds(
                              absl::ToDoubleSeconds(ping->round_trip));
                          response->set_hops(ping->hops);
                        }
                        later->Finish(ping.status());
                      });
  return reactor;
}

Reactor* MemberCalls::ListEvents(const Call& call,
                                 const pb::ListEventsRequest* request,
                                 pb::ListEventsResponse* response) {
  const auto kinds = WantedKinds(*request);
  if (!kinds.ok()) return Answers::Now(call, kinds.status());
  const size_t limit =
      request->limit() == 0
          ? kKeptEvents
          : static_cast<size_t>(
                std::clamp(request->limit(), 1, static_cast<int>(kKeptEvents)));
  const KeptEvents kept = backend_.Events();
  std::vector<pb::Event> wanted;
  for (const TimedEvent& event : kept.events) {
    pb::Event message;
    ToProto(event, message);
    if (!kinds->empty() && kinds->count(message.kind()) == 0) continue;
    wanted.push_back(std::move(message));
  }
  for (size_t i = wanted.size() - std::min(limit, wanted.size());
       i < wanted.size(); ++i) {
    *response->add_events() = std::move(wanted[i]);
  }
  response->set_forgotten(kept.forgotten);
  return Answers::Now(call, absl::OkStatus());
}

}  // namespace dfl::control
