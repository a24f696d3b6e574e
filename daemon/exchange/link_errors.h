// What the handler of a transport is told when a link fails, from what gRPC and
// the peer said.
#ifndef DFL_EXCHANGE_LINK_ERRORS_H_
#define DFL_EXCHANGE_LINK_ERRORS_H_

#include <string>

#include "absl/status/status.h"
#include "daemon/ports/transport.h"

namespace dfl::exchange {

// Why dialling `address` came to nothing. INVALID_ARGUMENT and
// FAILED_PRECONDITION stay; a listener that does not know our service is
// FAILED_PRECONDITION; all else is UNAVAILABLE.
absl::Status DialError(const std::string& address, const absl::Status& cause);

// Why the link to `peer` is gone. `dialled` is "" when the peer dialled.
// INVALID_ARGUMENT: it broke the protocol. UNAVAILABLE: the connection was
// lost, or the peer closed the link.
absl::Status LossReason(const ports::PeerIdentity& peer,
                        const std::string& dialled, const absl::Status& cause);

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_LINK_ERRORS_H_
