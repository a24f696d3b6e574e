#include "daemon/exchange/address.h"

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/try_listen.h"

namespace dfl::exchange {

absl::StatusOr<HostPort> ParseAddress(absl::string_view address) {
  absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (parsed.ok()) return parsed;
  return absl::InvalidArgumentError(
      absl::StrCat("address \"", address, "\": ", parsed.status().message(),
                   "; ", kHostPortForms));
}

absl::Status CheckBindable(const HostPort& address) {
  const ListenFailure failure = TryListen(address);
  if (failure.ok()) return absl::OkStatus();
  const std::string place = absl::StrCat(
      "cannot listen on ", address.ToString(), ": ", failure.text());
  if (failure.resolve_error != 0) {
    return absl::UnavailableError(
        absl::StrCat(place, "; use a name or an address of this machine"));
  }
  switch (failure.error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(absl::StrCat(
          place, "; stop what listens there or choose another port"));
    case EACCES:
      return absl::PermissionDeniedError(
          absl::StrCat(place, "; choose a port above 1023"));
    case EADDRNOTAVAIL:
      return absl::UnavailableError(absl::StrCat(
          place, "; use an address of this machine, or 0.0.0.0 or [::]"));
    default:
      return absl::UnavailableError(place);
  }
}

}  // namespace dfl::exchange
