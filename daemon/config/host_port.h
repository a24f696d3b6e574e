// "host:port" as users write it: a name, an IPv4 address, or an IPv6 address in
// brackets.
#ifndef DFL_CONFIG_HOST_PORT_H_
#define DFL_CONFIG_HOST_PORT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl::config {

struct HostPort {
  std::string host;  // IPv6 without its brackets
  uint16_t port = 0;

  // "box-2:7600", "[fd00::2]:7600".
  std::string ToString() const;
};

// Errors: INVALID_ARGUMENT says what is wrong: no port, not in 0 to 65535, an
// IPv6 address without brackets, a character that no host name has.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);

// 0.0.0.0, [::] and the like: fit to listen on, not to be reached at.
bool IsWildcard(absl::string_view host);
// 127.x.x.x, ::1, localhost.
bool IsLoopback(absl::string_view host);

}  // namespace dfl::config

#endif  // DFL_CONFIG_HOST_PORT_H_
