// What each call about the network's members, and about what happened on this
// node, does once the gate has let it in.
#ifndef DFL_CONTROL_MEMBER_CALLS_H_
#define DFL_CONTROL_MEMBER_CALLS_H_

#include "daemon/control/answers.h"
#include "daemon/control/backend.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl::control {

// Thread-safe.
class MemberCalls {
 public:
  // Both outlive it.
  MemberCalls(Backend& backend, Answers& answers);

  // Handlers, in the order of control.proto.
  Reactor* ListMembers(const Call&, const dfl::control::v1::ListMembersRequest*,
                       dfl::control::v1::ListMembersResponse*);
  Reactor* PingMember(const Call&, const dfl::control::v1::PingMemberRequest*,
                      dfl::control::v1::PingMemberResponse*);
  Reactor* ListEvents(const Call&, const dfl::control::v1::ListEventsRequest*,
                      dfl::control::v1::ListEventsResponse*);

 private:
  Backend& backend_;
  Answers& answers_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_MEMBER_CALLS_H_
