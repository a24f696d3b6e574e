#include "daemon/exchange/link_errors.h"

#include "absl/strings/str_cat.h"

namespace dfl::exchange {

absl::Status DialError(const std::string& address, const absl::Status& cause) {
  const std::string text =
      absl::StrCat("dialling ", address, ": ", cause.message());
  switch (cause.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return absl::Status(cause.code(), text);
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

}  // namespace dfl::exchange
