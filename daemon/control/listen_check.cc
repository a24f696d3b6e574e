#include "daemon/control/listen_check.h"

#include <cerrno>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/host_port.h"
#include "daemon/base/try_listen.h"

namespace dfl::control {

absl::Status CheckListenAddress(const std::string& address) {
  const std::string place = absl::StrCat("control address ", address, ": ");
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, parsed.status().message(), "; ", kHostPortForms));
  }
  const ListenFailure failure = TryListen(*parsed);
  if (failure.ok()) return absl::OkStatus();
  if (failure.resolve_error != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        place, failure.text(), "; give a name or address of this machine"));
  }
  switch (failure.error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(
          absl::StrCat(place,
                       "address in use; stop who listens there or give "
                       "another port, 0 for any"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat(place, failure.text(), "; give a port above 1023"));
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          place, failure.text(), "; give an address of this machine"));
  }
}

}  // namespace dfl::control
