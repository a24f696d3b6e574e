// How a new node gets its certificate: makes a key, connects to the issuer that
// made its join token, and writes the three files that tls::CheckCredentials
// reads.
//
// The key never leaves this machine. The token's secret leaves it only after
// the TLS handshake, in which CheckIssuer judged what the other end showed.
#ifndef DFL_ENROL_JOINING_H_
#define DFL_ENROL_JOINING_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/enrol/join_token.h"
#include "daemon/tls/credentials.h"
#include "daemon/tls/identity.h"

namespace dfl::enrol {

struct JoinOptions {
  JoinToken token;
  std::string at;  // host:port of the issuer
  // The name of this node, which the token must be for. "": as the token says.
  std::string node;
  // Where the files will be; their folders are made, for their owner alone.
  tls::CredentialPaths paths;
  absl::Duration timeout = absl::Seconds(20);
  std::function<absl::Time()> clock = [] { return absl::Now(); };
};

struct Joined {
  tls::Identity identity;
  absl::Time not_after;
  std::vector<std::string> written;  // paths
};

// Blocks until it is done. May be called again after any failure: a key that is
// there is used again, so a lost answer strands nobody while the token lives.
// Errors, each with its cure:
//   UNAVAILABLE          nobody answers, there is no such host, the issuer is
//                        busy, or the clock is not set: try again later.
//   ALREADY_EXISTS       there is a certificate, or a bundle of another
//                        network.
//   INVALID_ARGUMENT     `at` is no address; the token is for another node.
//   FAILED_PRECONDITION, PERMISSION_DENIED, NOT_FOUND, ...  what answers is not
//                        the token's issuer, the issuer refused the token, a
//                        file cannot be read or written, or root calls this
//                        for a folder that is another user's.
absl::StatusOr<Joined> Join(const JoinOptions& options);

}  // namespace dfl::enrol

#endif  // DFL_ENROL_JOINING_H_
