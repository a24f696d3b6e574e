// Addresses of peers and of this node's listeners.
#ifndef DFL_EXCHANGE_ADDRESS_H_
#define DFL_EXCHANGE_ADDRESS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/host_port.h"

namespace dfl::exchange {

// As dfl::ParseHostPort.
// Errors: INVALID_ARGUMENT also quotes the address and gives an example.
absl::StatusOr<HostPort> ParseAddress(absl::string_view address);

// Whether a listener could bind `address` now.
// Errors: ALREADY_EXISTS: the port is in use; PERMISSION_DENIED: not for this
// user; UNAVAILABLE: not an address of this machine, or the name has none.
// Each text names the address and what to do.
absl::Status CheckBindable(const HostPort& address);

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_ADDRESS_H_
