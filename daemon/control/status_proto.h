// What the daemon tells, as messages of dfl.control.v1. client/proto_types.h
// reads them. proto/status_fields.h names the fields of a status for both.
#ifndef DFL_CONTROL_STATUS_PROTO_H_
#define DFL_CONTROL_STATUS_PROTO_H_

#include "daemon/control/backend.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/status.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl::control {

dfl::control::v1::Phase ToProto(ports::Phase phase);
void ToProto(const core::KnobValue& value, dfl::control::v1::KnobValue& out);
void ToProto(const runtime::PeerStatus& from,
             dfl::control::v1::PeerStatus& out);
void ToProto(const runtime::NodeStatus& from,
             dfl::control::v1::NodeStatus& out);
void ToProto(const DaemonStatus& from, dfl::control::v1::DaemonStatus& out);
void ToProto(const ModelFacts& facts, dfl::control::v1::ModelFacts& out);
void ToProto(const PeerAddress& address, dfl::control::v1::PeerAddress& out);

}  // namespace dfl::control

#endif  // DFL_CONTROL_STATUS_PROTO_H_
