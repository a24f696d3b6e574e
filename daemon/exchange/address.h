// "host:port" as people write it: a name, an IPv4 address, or an IPv6 address
// in brackets.
#ifndef DFL_EXCHANGE_ADDRESS_H_
#define DFL_EXCHANGE_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl::exchange {

struct HostPort {
  std::string host;  // without brackets
  int port = 0;      // 0 to 65535

  // "host:port", an IPv6 address in brackets.
  std::string ToString() const;
};

// Errors: INVALID_ARGUMENT says what is wrong and gives an example.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view address);

// Whether a listener could bind `address` now, tried with a socket that is
// closed again. gRPC itself tells no cause.
// Errors: ALREADY_EXISTS: the port is in use; PERMISSION_DENIED: not for this
// user; UNAVAILABLE: not an address of this machine, or the name has none.
// Each text names the address and what to do.
absl::Status CheckBindable(const HostPort& address);

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_ADDRESS_H_
