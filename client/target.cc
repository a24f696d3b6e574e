#include "client/target.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/host_port.h"

namespace dfl {
namespace client {
namespace {

absl::Status BadTarget(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("target \"", text, "\": ", why,
                   "; allowed: unix:/path/of/control.sock, host:port, "
                   "[IPv6]:port"));
}

// errno of connecting to the socket, 0 when it works.
int Probe(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int error = connect(fd, reinterpret_cast<const sockaddr*>(&address),
                            sizeof(address)) == 0
                        ? 0
                        : errno;
  close(fd);
  return error;
}

}  // namespace

absl::StatusOr<Target> ParseTarget(absl::string_view text) {
  absl::string_view rest = text;
  const bool said_unix = absl::ConsumePrefix(&rest, "unix:");
  if (said_unix && absl::StartsWith(rest, "///")) rest.remove_prefix(2);
  if (said_unix || absl::StartsWith(rest, "/") ||
      absl::StartsWith(rest, "./")) {
    const size_t longest = sizeof(sockaddr_un{}.sun_path) - 1;
    if (rest.empty()) return BadTarget(text, "has no path");
    if (rest.size() > longest) {
      return BadTarget(
          text, absl::StrCat("the path has ", rest.size(), " bytes, at most ",
                             longest, " are possible"));
    }
    return Target{absl::StrCat("unix:", rest), std::string(rest)};
  }
  const absl::StatusOr<HostPort> address = ParseHostPort(rest);
  if (!address.ok()) return BadTarget(text, address.status().message());
  if (address->port == 0) {
    return BadTarget(text, "its port is not in 1 to 65535");
  }
  return Target{std::string(rest), ""};
}

absl::Status ExplainUnavailable(const Target& target,
                                const absl::Status& status) {
  if (target.socket_path.empty()) {
    return absl::UnavailableError(absl::StrCat(
        target.text, ": nobody answers there (", status.message(),
        "); is dfld running there, with control.listen on that address?"));
  }
  switch (Probe(target.socket_path)) {
    case ENOENT:
    case ENOTDIR:
      return absl::UnavailableError(
          absl::StrCat(target.text,
                       ": there is no such socket; is dfld running, and is "
                       "control.socket that path?"));
    case ECONNREFUSED:
      return absl::UnavailableError(
          absl::StrCat(target.text,
                       ": nobody listens there; dfld has ended, start it "
                       "again"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat(target.text,
                       ": this user may not open the socket; become a member "
                       "of its group (see ls -l) or use sudo"));
    case ENOTSOCK:
    case EPROTOTYPE:
      return absl::UnavailableError(
          absl::StrCat(target.text, ": this file is no socket of dfld"));
    default:
      return absl::UnavailableError(
          absl::StrCat(target.text, ": ", status.message()));
  }
}

}  // namespace client
}  // namespace dfl
