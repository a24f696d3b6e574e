// A join token: what a new node needs to get its certificate, once. It names
// the issuer that made it, the node, and the authority that the issuer must
// show, and it carries a secret that only that issuer can redeem.
#ifndef DFL_ENROL_JOIN_TOKEN_H_
#define DFL_ENROL_JOIN_TOKEN_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace dfl::enrol {

inline constexpr size_t kSecretBytes = 32;

struct JoinToken {
  std::string issuer;  // its id, 16 lower-case hexadecimal digits
  std::string cluster;
  std::string node;
  absl::Time expires;            // by the issuer's clock, in whole seconds
  std::string authority_sha256;  // of its certificate, 64 hexadecimal digits
  std::string secret;            // kSecretBytes bytes; never to be logged

  friend bool operator==(const JoinToken&, const JoinToken&) = default;
};

// "dfl1.CggwMTIz...": letters, digits, '-', '_' and one '.'.
std::string ToText(const JoinToken& token);

// The inverse of ToText; white space around it is skipped.
// Errors: INVALID_ARGUMENT says whether it is no token, of a later version, or
// damaged. The text itself is never quoted: it is a secret.
absl::StatusOr<JoinToken> ParseJoinToken(absl::string_view text);

// What a token is called in lists and logs: 16 hexadecimal digits, which do
// not tell its secret.
std::string TokenId(absl::string_view secret);

// `bytes` random bytes of the system.
std::string RandomBytes(size_t bytes);

}  // namespace dfl::enrol

#endif  // DFL_ENROL_JOIN_TOKEN_H_
