// Members of the network as messages of dfl.control.v1.
#ifndef DFL_CONTROL_MEMBER_PROTO_H_
#define DFL_CONTROL_MEMBER_PROTO_H_

#include <string>

#include "absl/time/time.h"
#include "daemon/control/backend.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl::control {

void ToProto(const MemberInfo& member, dfl::control::v1::Member& out);

// What this node says of itself to members that ask for its status, noted `age`
// ago: a serialised dfl.control.v1.MemberReport.
std::string MemberReport(const DaemonStatus& status, absl::Duration age);

}  // namespace dfl::control

#endif  // DFL_CONTROL_MEMBER_PROTO_H_
