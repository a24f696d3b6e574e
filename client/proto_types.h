// Messages of dfl.control.v1 as plain values. Not installed.
#ifndef DFL_CLIENT_PROTO_TYPES_H_
#define DFL_CLIENT_PROTO_TYPES_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/types.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl {
namespace client {

Phase FromProto(dfl::control::v1::Phase phase);
PeerStatus FromProto(const dfl::control::v1::PeerStatus& in);
NodeStatus FromProto(const dfl::control::v1::NodeStatus& in);
DaemonStatus FromProto(const dfl::control::v1::DaemonStatus& in);
WatchUpdate FromProto(const dfl::control::v1::WatchResponse& in);
ModelFacts FromProto(const dfl::control::v1::ModelFacts& in);
DataContract FromProto(const dfl::control::v1::DataContract& in);
NodeData FromProto(const dfl::control::v1::GetDataResponse& in);
RecordInfo FromProto(const dfl::control::v1::RecordInfo& in);
PeerAddress FromProto(const dfl::control::v1::PeerAddress& in);
Member FromProto(const dfl::control::v1::Member& in);
MemberTable FromProto(const dfl::control::v1::ListMembersResponse& in);
MemberAnswer FromProto(const dfl::control::v1::AskMembersResponse& in);
EventList FromProto(const dfl::control::v1::ListEventsResponse& in);
CheckpointInfo FromProto(const dfl::control::v1::CheckpointInfo& in);
CheckpointList FromProto(const dfl::control::v1::ListCheckpointsResponse& in);
LogLevel FromProto(dfl::control::v1::LogLevel level);
LogList FromProto(const dfl::control::v1::GetLogResponse& in);
Diagnosis FromProto(const dfl::control::v1::DiagnoseResponse& in);

void ToProto(const MemberSelection& selection,
             dfl::control::v1::MemberSelection& out);
// Errors: INVALID_ARGUMENT for a name that EventKinds() does not have.
absl::StatusOr<dfl::control::v1::EventKind> EventKindOf(
    const std::string& name);

}  // namespace client
}  // namespace dfl

#endif  // DFL_CLIENT_PROTO_TYPES_H_
