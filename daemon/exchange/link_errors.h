// What the handler of a transport is told when a link fails, from what gRPC and
// the peer said.
#ifndef DFL_EXCHANGE_LINK_ERRORS_H_
#define DFL_EXCHANGE_LINK_ERRORS_H_

#include <string>

#include "absl/status/status.h"
#include "daemon/ports/transport.h"

namespace dfl::exchange {

// What a failed dial of a secured network means: `refused` is why we refused
// the peer in the handshake, "" when we did not. A peer that refuses us only
// closes the connection.
absl::Status HandshakeError(const absl::Status& cause,
                            const std::string& refused);

// Why dialling `address` came to nothing. INVALID_ARGUMENT and
// FAILED_PRECONDITION stay; PERMISSION_DENIED, and a listener that does not
// know our service, are FAILED_PRECONDITION; all else is UNAVAILABLE.
absl::Status DialError(const std::string& address, const absl::Status& cause);

// Why the link to `peer` is gone. `dialled` is "" when the peer dialled.
// INVALID_ARGUMENT: it broke the protocol. UNAVAILABLE: the connection was
// lost, or the peer closed the link.
absl::Status LossReason(const ports::PeerIdentity& peer,
                        const std::string& dialled, const absl::Status& cause);

// Why this node ends the link to `peer`, whose certificate does not hold any
// more: PERMISSION_DENIED.
absl::Status NotAdmitted(const ports::PeerIdentity& peer,
                         const std::string& why);

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_LINK_ERRORS_H_
