// Listening at an address, and why it cannot be done: gRPC only says that it
// cannot.
#ifndef DFL_BASE_TRY_LISTEN_H_
#define DFL_BASE_TRY_LISTEN_H_

#include <vector>

#include "daemon/base/host_port.h"

namespace dfl {

// What stands against listening. At most one of the two is set.
struct ListenFailure {
  int resolve_error = 0;  // of getaddrinfo: the host has no address
  int error = 0;          // errno of the last address that was tried

  bool ok() const { return resolve_error == 0 && error == 0; }
  // What the system calls it.
  const char* text() const;
};

// Listens at `address` for a moment. A name may stand for several addresses;
// one that can be listened on is enough. Connections of a former process that
// are still in TIME_WAIT do not matter. Blocks while the name is resolved.
ListenFailure TryListen(const HostPort& address);

struct Listening {
  ListenFailure failure;
  // Sockets that listen and do not block, at least one unless there is a
  // failure; the caller closes them. All have the same port.
  std::vector<int> fds;
  int port = 0;
};

// Listens at every address that `address` stands for and that can be listened
// on, as TryListen. With port 0 the system chooses one. "::" is listened on for
// IPv4 too.
Listening ListenAt(const HostPort& address, int backlog);

}  // namespace dfl

#endif  // DFL_BASE_TRY_LISTEN_H_
