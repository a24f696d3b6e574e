// absl::Status to grpc::Status: the only place in this room that maps them.
#ifndef DFL_CONTROL_GRPC_STATUS_H_
#define DFL_CONTROL_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace dfl::control {

// Same code, same text; a text beyond 2,000 bytes is cut, for it travels in an
// HTTP/2 trailer.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace dfl::control

#endif  // DFL_CONTROL_GRPC_STATUS_H_
