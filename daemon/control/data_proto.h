// What a node tells of its data, as messages of dfl.control.v1.
#ifndef DFL_CONTROL_DATA_PROTO_H_
#define DFL_CONTROL_DATA_PROTO_H_

#include "daemon/control/backend.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl::control {

void ToProto(const core::DataContract& contract,
             dfl::control::v1::DataContract& out);
// All but `node`.
void ToProto(const NodeData& data, dfl::control::v1::GetDataResponse& out);

}  // namespace dfl::control

#endif  // DFL_CONTROL_DATA_PROTO_H_
