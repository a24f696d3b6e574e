#include "daemon/base/try_listen.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace dfl {
namespace {

int TryOne(const addrinfo& address) {
  const int fd = socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC,
                        address.ai_protocol);
  if (fd < 0) return errno;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  int error = 0;
  if (bind(fd, address.ai_addr, address.ai_addrlen) != 0 ||
      listen(fd, 1) != 0) {
    error = errno;
  }
  close(fd);
  return error;
}

}  // namespace

const char* ListenFailure::text() const {
  return resolve_error != 0 ? gai_strerror(resolve_error)
                            : std::strerror(error);
}

ListenFailure TryListen(const HostPort& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  ListenFailure failure;
  failure.resolve_error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(),
                  &hints, &found);
  if (failure.resolve_error != 0) return failure;
  failure.error = EADDRNOTAVAIL;
  for (const addrinfo* it = found; it != nullptr; it = it->ai_next) {
    failure.error = TryOne(*it);
    if (failure.error == 0) break;
  }
  freeaddrinfo(found);
  return failure;
}

}  // namespace dfl
