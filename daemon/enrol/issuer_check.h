// Whether what answers is the issuer that made a join token. It is asked in the
// TLS handshake, so the token's secret goes to nobody else.
#ifndef DFL_ENROL_ISSUER_CHECK_H_
#define DFL_ENROL_ISSUER_CHECK_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/enrol/join_token.h"
#include "daemon/tls/peer_check.h"

namespace dfl::enrol {

// OK when the chain holds the certificate of the authority whose SHA-256 is in
// the token, when that authority vouches for the leaf, and when the leaf is
// that of the token's issuer: another certificate of the same network, such as
// a node's, is not enough.
// Errors, all of which say that the secret was not sent:
//   UNAVAILABLE          the leaf's start is after `now`: the clock may not be
//                        set yet. Wait and try again.
//   FAILED_PRECONDITION  all else.
absl::Status CheckIssuer(const tls::PresentedChain& presented,
                         const JoinToken& token, absl::Time now);

}  // namespace dfl::enrol

#endif  // DFL_ENROL_ISSUER_CHECK_H_
