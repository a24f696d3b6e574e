// Why a network address cannot be listened on: gRPC only says that it cannot.
// Room-internal.
#ifndef DFL_CONTROL_LISTEN_CHECK_H_
#define DFL_CONTROL_LISTEN_CHECK_H_

#include <string>

#include "absl/status/status.h"

namespace dfl::control {

// Binds `address` ("host:port") for a moment.
// Errors: INVALID_ARGUMENT when it is no address of this machine or none at
// all; ALREADY_EXISTS "address in use" names the port; PERMISSION_DENIED.
absl::Status CheckListenAddress(const std::string& address);

}  // namespace dfl::control

#endif  // DFL_CONTROL_LISTEN_CHECK_H_
