#include "daemon/control/listen_check.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "daemon/config/host_port.h"

namespace dfl::control {
namespace {

absl::Status BindError(const std::string& address, int error) {
  const std::string text =
      absl::StrCat("control address ", address, ": ", std::strerror(error));
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(
          absl::StrCat("control address ", address,
                       ": address in use; stop who listens there or give "
                       "another port, 0 for any"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat(text, "; give a port above 1023"));
    default:
      return absl::InvalidArgumentError(
          absl::StrCat(text, "; give an address of this machine"));
  }
}

int TryBind(const addrinfo& found) {
  const int fd = socket(found.ai_family, found.ai_socktype | SOCK_CLOEXEC,
                        found.ai_protocol);
  if (fd < 0) return errno;
  const int on = 1;
  // As gRPC does: connections of a former process in TIME_WAIT don't matter.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  int error = 0;
  if (bind(fd, found.ai_addr, found.ai_addrlen) != 0 || listen(fd, 1) != 0) {
    error = errno;
  }
  close(fd);
  return error;
}

}  // namespace

absl::Status CheckListenAddress(const std::string& address) {
  const absl::StatusOr<config::HostPort> parsed =
      config::ParseHostPort(address);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "control address ", address, ": ", parsed.status().message()));
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(
      parsed->host.c_str(), absl::StrCat(parsed->port).c_str(), &hints, &list);
  if (failed != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("control address ", address, ": ", gai_strerror(failed),
                     "; give a name or address of this machine"));
  }
  int error = EADDRNOTAVAIL;
  for (const addrinfo* it = list; it != nullptr; it = it->ai_next) {
    error = TryBind(*it);
    if (error == 0) break;
  }
  freeaddrinfo(list);
  return error == 0 ? absl::OkStatus() : BindError(address, error);
}

}  // namespace dfl::control
