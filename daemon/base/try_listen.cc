#include "daemon/base/try_listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace dfl {
namespace {

int PortOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

void SetPort(sockaddr_storage& address, int port) {
  if (address.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  }
}

// Adds a socket to `listening`, or returns errno.
int ListenAtOne(const addrinfo& found, int backlog, Listening& listening) {
  const int fd =
      socket(found.ai_family, found.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
             found.ai_protocol);
  if (fd < 0) return errno;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // The wildcard of IPv6 is that of IPv4 too, whatever the system's default is.
  const int off = 0;
  if (found.ai_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  sockaddr_storage address{};
  std::memcpy(&address, found.ai_addr, found.ai_addrlen);
  if (listening.port != 0) SetPort(address, listening.port);
  socklen_t length = found.ai_addrlen;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(fd, backlog) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    const int error = errno;
    close(fd);
    return error;
  }
  listening.port = PortOf(address);
  listening.fds.push_back(fd);
  return 0;
}

}  // namespace

const char* ListenFailure::text() const {
  return resolve_error != 0 ? gai_strerror(resolve_error)
                            : std::strerror(error);
}

ListenFailure TryListen(const HostPort& address) {
  const Listening listening = ListenAt(address, 1);
  for (const int fd : listening.fds) close(fd);
  return listening.failure;
}

Listening ListenAt(const HostPort& address, int backlog) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  Listening listening;
  listening.failure.resolve_error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(),
                  &hints, &found);
  if (listening.failure.resolve_error != 0) return listening;
  int error = EADDRNOTAVAIL;
  for (const addrinfo* it = found; it != nullptr; it = it->ai_next) {
    const int failed = ListenAtOne(*it, backlog, listening);
    if (failed != 0) error = failed;
  }
  freeaddrinfo(found);
  if (listening.fds.empty()) listening.failure.error = error;
  return listening;
}

}  // namespace dfl
