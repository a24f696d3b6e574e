// Accepts connections on a unix socket and remembers who is at the other end,
// which gRPC's own listener does not.
//
//   Bind     a stale file (nobody listens) is replaced, a live one is an error;
//            the mode is set before anybody can connect
//   Start    hands each connection's descriptor on
//   Stop     accepts no more and removes the file, if it is still this one's
//
// Thread-safe after Bind.
#ifndef DFL_CONTROL_UNIX_LISTENER_H_
#define DFL_CONTROL_UNIX_LISTENER_H_

#include <sys/stat.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "daemon/control/unix_roles.h"

namespace dfl::control {

class UnixListener {
 public:
  // Errors: ALREADY_EXISTS when somebody listens there, or the path is a file
  // of another kind; NOT_FOUND when its folder is missing; PERMISSION_DENIED;
  // INVALID_ARGUMENT when the path is empty or too long for the system.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Bind(std::string path,
                                                            mode_t mode);
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  const std::string& path() const { return path_; }

  // Calls `on_connection(fd)` on a thread of its own; the callee owns `fd`, a
  // connected, non-blocking stream. Call once.
  void Start(std::function<void(int fd)> on_connection);

  // Once it has returned, no on_connection runs or follows. Idempotent.
  void Stop();

  // Who is at the other end of a connection that was handed on as `fd`; nullopt
  // for any other number, or when the system did not tell.
  std::optional<UnixPeer> PeerOf(int fd) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  UnixListener(std::string path, int listen_fd, int wake_fd);
  void Accept(const std::function<void(int fd)>& on_connection);

  const std::string path_;
  const int listen_fd_;
  const int wake_fd_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool stopped_ = false;
  std::thread thread_;
  mutable absl::Mutex mutex_;
  // The newest one counts: a number is not used again while its connection is
  // open, and gRPC keeps the connection open as long as a call of it lives.
  std::map<int, UnixPeer> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_UNIX_LISTENER_H_
