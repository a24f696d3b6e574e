// Where a daemon is: "unix:/path", "host:port", or "insecure:host:port". Not
// installed.
#ifndef DFL_CLIENT_TARGET_H_
#define DFL_CLIENT_TARGET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl {
namespace client {

struct Target {
  std::string text;         // in full form, as the user may give it
  std::string address;      // as gRPC takes it: "unix:/path" or "host:port"
  std::string socket_path;  // "" when it is on the network
  bool plaintext = false;   // it was given as "insecure:host:port"
};

// "unix:/path", "/path", "./path", "host:port", "[v6]:port", and the last two
// with "insecure:" before them.
// Errors: INVALID_ARGUMENT says what is allowed.
absl::StatusOr<Target> ParseTarget(absl::string_view text);

// Says why a call to `target` failed, which gRPC does not. `status` has the
// code UNAVAILABLE, which stays when nobody answers there; PERMISSION_DENIED:
// this user may not open the socket, or has no role; UNAUTHENTICATED: the
// daemon speaks TLS and we do not, or the other way round, or it does not
// accept our certificate. `identity` is ours with TLS, "" in plain text;
// `let_in`: the daemon has accepted it before.
absl::Status ExplainUnavailable(const Target& target,
                                const std::string& identity, bool let_in,
                                const absl::Status& status);

}  // namespace client
}  // namespace dfl

#endif  // DFL_CLIENT_TARGET_H_
