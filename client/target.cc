#include "client/target.h"

#include <netdb.h>
#include <poll.h>
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

constexpr int kConnectMilliseconds = 1000;
constexpr int kGreetingMilliseconds = 500;

absl::Status BadTarget(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("target \"", text, "\": ", why,
                   "; allowed: unix:/path/of/control.sock, host:port, "
                   "[IPv6]:port, insecure:host:port"));
}

// errno of connecting to the socket, 0 when it works. `cut_off`: the daemon
// ended the connection at once, where it sends its greeting to others.
int Probe(const std::string& path, bool& cut_off) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int error = connect(fd, reinterpret_cast<const sockaddr*>(&address),
                            sizeof(address)) == 0
                        ? 0
                        : errno;
  pollfd wait = {fd, POLLIN, 0};
  char byte = 0;
  cut_off = error == 0 && poll(&wait, 1, kGreetingMilliseconds) == 1 &&
            recv(fd, &byte, 1, 0) == 0;
  close(fd);
  return error;
}

enum class Greeting { kNobody, kPlaintext, kSilent, kClosed };

// What a daemon does with a connection on which nothing is sent. In plain text
// gRPC begins with a SETTINGS frame; with TLS the client begins.
Greeting Greet(const HostPort& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(),
                  &hints, &found) != 0) {
    return Greeting::kNobody;
  }
  Greeting greeting = Greeting::kNobody;
  for (const addrinfo* at = found;
       at != nullptr && greeting == Greeting::kNobody; at = at->ai_next) {
    const int fd =
        socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) continue;
    pollfd wait = {fd, POLLOUT, 0};
    int error = 0;
    socklen_t size = sizeof(error);
    if ((connect(fd, at->ai_addr, at->ai_addrlen) == 0 ||
         errno == EINPROGRESS) &&
        poll(&wait, 1, kConnectMilliseconds) == 1 &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
        error == 0) {
      wait.events = POLLIN;
      unsigned char frame[4] = {};
      greeting = Greeting::kSilent;
      if (poll(&wait, 1, kGreetingMilliseconds) == 1) {
        // Length of three bytes, then the type.
        const bool settings = recv(fd, frame, sizeof(frame), 0) == 4 &&
                              frame[0] == 0 && frame[3] == 4;
        greeting = settings ? Greeting::kPlaintext : Greeting::kClosed;
      }
    }
    close(fd);
  }
  freeaddrinfo(found);
  return greeting;
}

absl::Status ExplainNetwork(const Target& target, const std::string& identity,
                            bool let_in, const absl::Status& status) {
  const absl::StatusOr<HostPort> address = ParseHostPort(target.address);
  const Greeting greeting = address.ok() ? Greet(*address) : Greeting::kNobody;
  const bool tls = !identity.empty();
  if (greeting == Greeting::kNobody) {
    return absl::UnavailableError(absl::StrCat(
        target.text, ": nobody answers there (", status.message(),
        "); is dfld running there, with control.listen on that address?"));
  }
  if (tls && greeting == Greeting::kPlaintext) {
    return absl::UnauthenticatedError(absl::StrCat(
        target.text,
        ": the daemon there speaks plain text (`security: insecure`), and "
        "nothing proves who it is; give it a certificate, or call with "
        "--insecure if that is meant"));
  }
  if (!tls && greeting == Greeting::kSilent) {
    return absl::UnauthenticatedError(absl::StrCat(
        target.text,
        ": the daemon there does not speak plain text; it has `security: tls`: "
        "call without --insecure, with your certificate"));
  }
  if (tls && let_in) {
    return absl::UnavailableError(absl::StrCat(
        target.text, ": the connection broke, and a daemon listens there (",
        status.message(), ")"));
  }
  if (tls && greeting == Greeting::kSilent) {
    return absl::UnauthenticatedError(absl::StrCat(
        target.text, ": the daemon there ended the connection of ", identity,
        " in the TLS handshake; is that of its network, not expired, and not "
        "banned (`dflctl peer list`)? its log and audit.log say why"));
  }
  return absl::UnavailableError(
      absl::StrCat(target.text, ": ", status.message()));
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
    const std::string full = absl::StrCat("unix:", rest);
    return Target{full, full, std::string(rest)};
  }
  const bool plaintext = absl::ConsumePrefix(&rest, "insecure:");
  const absl::StatusOr<HostPort> address = ParseHostPort(rest);
  if (!address.ok()) return BadTarget(text, address.status().message());
  if (address->port == 0) {
    return BadTarget(text, "its port is not in 1 to 65535");
  }
  return Target{std::string(text), std::string(rest), "", plaintext};
}

absl::Status ExplainUnavailable(const Target& target,
                                const std::string& identity, bool let_in,
                                const absl::Status& status) {
  if (target.socket_path.empty()) {
    return ExplainNetwork(target, identity, let_in, status);
  }
  bool cut_off = false;
  const int error = Probe(target.socket_path, cut_off);
  if (cut_off) {
    return absl::PermissionDeniedError(absl::StrCat(
        target.text,
        ": the daemon ended the connection at once: this user has no role "
        "there; have it named in control.admins or control.viewers, or use "
        "sudo"));
  }
  switch (error) {
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
