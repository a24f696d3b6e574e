// Addresses of peers.
#ifndef DFL_EXCHANGE_ADDRESS_H_
#define DFL_EXCHANGE_ADDRESS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/host_port.h"

namespace dfl::exchange {

// As dfl::ParseHostPort.
// Errors: INVALID_ARGUMENT also quotes the address and gives an example.
absl::StatusOr<HostPort> ParseAddress(absl::string_view address);

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_ADDRESS_H_
