// Where a daemon is: "unix:/path" or "host:port". Not installed.
#ifndef DFL_CLIENT_TARGET_H_
#define DFL_CLIENT_TARGET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl {
namespace client {

struct Target {
  std::string text;         // in full form: "unix:/path" or "host:port"
  std::string socket_path;  // "" when it is on the network
};

// "unix:/path", "/path", "./path", "host:port", "[v6]:port".
// Errors: INVALID_ARGUMENT says what is allowed.
absl::StatusOr<Target> ParseTarget(absl::string_view text);

// Says why a call to `target` failed, which gRPC does not: there is no such
// socket, nobody listens on it, or this user may not open it (the code is then
// PERMISSION_DENIED). `status` has the code UNAVAILABLE.
absl::Status ExplainUnavailable(const Target& target,
                                const absl::Status& status);

}  // namespace client
}  // namespace dfl

#endif  // DFL_CLIENT_TARGET_H_
