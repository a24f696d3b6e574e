#include "daemon/exchange/link_errors.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace dfl::exchange {

absl::Status HandshakeError(const absl::Status& cause,
                            const std::string& refused) {
  if (!refused.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("this node does not admit the peer: ", refused));
  }
  if (cause.code() != absl::StatusCode::kUnavailable) return cause;
  // What gRPC says of a connection that was there.
  for (const absl::string_view sign :
       {"ocket closed", "onnection reset", "roken pipe", "andshak", "EOF"}) {
    if (!absl::StrContains(cause.message(), sign)) continue;
    return absl::UnavailableError(absl::StrCat(
        "the peer closed the connection in the TLS handshake: it does not "
        "accept this node's certificate, or does not speak TLS; its log says "
        "why (",
        cause.message(), ")"));
  }
  return cause;
}

absl::Status DialError(const std::string& address, const absl::Status& cause) {
  const std::string text =
      absl::StrCat("dialling ", address, ": ", cause.message());
  switch (cause.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return absl::Status(cause.code(), text);
    case absl::StatusCode::kPermissionDenied:
      return absl::FailedPreconditionError(text);
    case absl::StatusCode::kUnimplemented:
      return absl::FailedPreconditionError(
          absl::StrCat("dialling ", address,
                       ": what listens there is no peer listener of dfld (",
                       cause.message(), ")"));
    default:
      return absl::UnavailableError(text);
  }
}

absl::Status LossReason(const ports::PeerIdentity& peer,
                        const std::string& dialled, const absl::Status& cause) {
  const std::string who =
      dialled.empty() ? peer.node.name()
                      : absl::StrCat(peer.node.name(), " (", dialled, ")");
  switch (cause.code()) {
    case absl::StatusCode::kInvalidArgument:
      return absl::InvalidArgumentError(
          absl::StrCat(who, " broke the protocol: ", cause.message()));
    case absl::StatusCode::kUnavailable:
      return absl::UnavailableError(
          absl::StrCat("connection to ", who, " lost: ", cause.message()));
    default:
      return absl::UnavailableError(
          absl::StrCat(who, " closed the link: ", cause.message()));
  }
}

absl::Status NotAdmitted(const ports::PeerIdentity& peer,
                         const std::string& why) {
  return absl::PermissionDeniedError(absl::StrCat(
      "node ", peer.node.name(), " is not admitted any more: ", why));
}

}  // namespace dfl::exchange
