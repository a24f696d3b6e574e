#include "daemon/exchange/address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace dfl::exchange {
namespace {

absl::Status BadAddress(absl::string_view address, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("address \"", address, "\": ", why,
                   "; write host:port, e.g. gateway-1:7400, 192.0.2.7:7400 or "
                   "[2001:db8::7]:7400"));
}

absl::Status BindError(const HostPort& address, int error) {
  const std::string place = absl::StrCat(
      "cannot listen on ", address.ToString(), ": ", std::strerror(error));
  switch (error) {
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

}  // namespace

std::string HostPort::ToString() const {
  return absl::StrContains(host, ":") ? absl::StrCat("[", host, "]:", port)
                                      : absl::StrCat(host, ":", port);
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view address) {
  HostPort parsed;
  absl::string_view port;
  if (absl::StartsWith(address, "[")) {
    const size_t end = address.find(']');
    if (end == absl::string_view::npos || end + 1 >= address.size() ||
        address[end + 1] != ':') {
      return BadAddress(address, "\"]:port\" is missing");
    }
    parsed.host = std::string(address.substr(1, end - 1));
    port = address.substr(end + 2);
  } else {
    const size_t colon = address.rfind(':');
    if (colon == absl::string_view::npos) {
      return BadAddress(address, "the port is missing");
    }
    parsed.host = std::string(address.substr(0, colon));
    if (absl::StrContains(parsed.host, ":")) {
      return BadAddress(address, "an IPv6 address needs brackets");
    }
    port = address.substr(colon + 1);
  }
  if (parsed.host.empty()) return BadAddress(address, "the host is missing");
  for (const char c : parsed.host) {
    if (c <= ' ' || c >= 127 || c == '/' || c == '[' || c == ']') {
      return BadAddress(address, "the host has a character no host has");
    }
  }
  if (port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(port, &parsed.port) || parsed.port > 65535) {
    return BadAddress(address, absl::StrCat("port \"", port,
                                            "\" is not a number from 0 to "
                                            "65535"));
  }
  return parsed;
}

absl::Status CheckBindable(const HostPort& address) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int resolved =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(),
                  &hints, &found);
  if (resolved != 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", address.ToString(), ": ", gai_strerror(resolved),
        "; use a name or an address of this machine"));
  }
  // One that can be bound is enough: a name may stand for several.
  absl::Status status = BindError(address, EADDRNOTAVAIL);
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    const int fd =
        socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd < 0) {
      status = BindError(address, errno);
      continue;
    }
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    const int bound = bind(fd, a->ai_addr, a->ai_addrlen);
    const int error = errno;
    close(fd);
    if (bound == 0) {
      status = absl::OkStatus();
      break;
    }
    status = BindError(address, error);
  }
  freeaddrinfo(found);
  return status;
}

}  // namespace dfl::exchange
