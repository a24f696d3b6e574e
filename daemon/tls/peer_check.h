// Whether a peer is who it says, from the certificates that it presented.
//
// CheckPeer is for the end of the handshake and for every later look at a live
// connection: a removed authority, an expired certificate and a ban all show
// there. CheckClaim is for what the peer says of itself once it can speak.
#ifndef DFL_TLS_PEER_CHECK_H_
#define DFL_TLS_PEER_CHECK_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/ids.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"

namespace dfl::tls {

// Why a peer is refused, in the order in which it is checked.
enum class PeerFault {
  kNone,
  kNoCertificate,
  kMalformed,  // no PEM, damaged, too large or too many
  kUnknownAuthority,
  kNotYetValid,
  kExpired,
  kWeakKey,
  kUnfit,
  kNoIdentity,  // no URI name, several, or one that is no identity
  kWrongCluster,
  kWrongRole,
  kBanned,
  kClaimsOtherCluster,
  kClaimsOtherName,
};
inline constexpr int kPeerFaults = 14;

// "no-certificate", "unknown-authority", ...: for counters.
absl::string_view Name(PeerFault fault);

// In PEM form. At a server OpenSSL leaves the leaf out of the chain, at a
// client it does not; both are accepted.
struct PresentedChain {
  absl::string_view leaf;
  absl::string_view chain;
};

// What a peer must be. The predicate is called with a verified identity.
struct PeerPolicy {
  absl::Span<const Certificate> bundle;
  absl::string_view cluster;
  absl::Span<const Role> roles;  // any of these
  absl::FunctionRef<bool(const Identity&)> banned;
};

struct PeerVerdict {
  PeerFault fault = PeerFault::kNone;
  std::string text;   // empty when there is no fault
  Identity identity;  // valid when there is no fault, and when banned

  bool ok() const { return fault == PeerFault::kNone; }
};

PeerVerdict CheckPeer(const PresentedChain& presented, const PeerPolicy& policy,
                      absl::Time now);

// What a node says in its Hello must be what its certificate says.
PeerVerdict CheckClaim(const Identity& identity, absl::string_view cluster,
                       const NodeId& node);

}  // namespace dfl::tls

#endif  // DFL_TLS_PEER_CHECK_H_
