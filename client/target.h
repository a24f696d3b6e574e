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

// Why a call to `target` failed, in more words than gRPC has: no such socket,
// a socket nobody listens on, one this user may not open (then the code becomes
// PERMISSION_DENIED). `status` has the code UNAVAILABLE.
absl::Status ExplainUnavailable(const Target& target,
                                const absl::Status& status);

}  // namespace client
}  // namespace dfl

#endif  // DFL_CLIENT_TARGET_H_
