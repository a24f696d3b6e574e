#include "daemon/control/unix_listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"

namespace dfl::control {
namespace {

constexpr int kBacklog = 64;
// After accept failed for want of descriptors.
constexpr int kRetryMilliseconds = 100;
constexpr size_t kGroups = 32;

absl::Status SystemError(absl::string_view path, absl::string_view what,
                         int error) {
  const std::string text = absl::StrCat("control socket ", path, ": ", what,
                                        ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(absl::StrCat(
          text, "; create its folder or give another path for the socket"));
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(absl::StrCat(
          text, "; give a path in a folder this user may write to"));
    default:
      return absl::InternalError(text);
  }
}

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

int BindTo(int fd, const std::string& path) {
  const sockaddr_un address = AddressOf(path);
  return bind(fd, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0
             ? 0
             : errno;
}

// OK after a socket file that nobody listens on was removed.
absl::Status RemoveStale(const std::string& path) {
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return SystemError(path, "cannot look at it", errno);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrCat("control socket ", path,
                     ": there is a file that is no socket; remove it or give "
                     "another path for the socket"));
  }
  const int probe =
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return SystemError(path, "cannot make a socket", errno);
  const sockaddr_un address = AddressOf(path);
  const int error = connect(probe, reinterpret_cast<const sockaddr*>(&address),
                            sizeof(address)) == 0
                        ? 0
                        : errno;
  close(probe);
  if (error == ECONNREFUSED || error == ENOENT) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      return SystemError(path, "cannot remove what a dead daemon left", errno);
    }
    return absl::OkStatus();
  }
  if (error == 0 || error == EAGAIN) {
    return absl::AlreadyExistsError(
        absl::StrCat("control socket ", path,
                     ": address in use: another daemon listens there; stop it "
                     "or give another path for the socket"));
  }
  return SystemError(path, "cannot tell whether somebody listens there", error);
}

std::optional<UnixPeer> PeerAt(int fd) {
  ucred process{};
  socklen_t size = sizeof(process);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &process, &size) != 0) {
    return std::nullopt;
  }
  UnixPeer peer = {process.uid, process.gid, process.pid, {}};
  // The kernel tells the length when it is too small.
  peer.groups.resize(kGroups);
  for (int attempt = 0; attempt < 2; ++attempt) {
    size = static_cast<socklen_t>(peer.groups.size() * sizeof(gid_t));
    const int result =
        getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &size);
    const int error = errno;
    peer.groups.resize(size / sizeof(gid_t));
    if (result == 0) return peer;
    if (error != ERANGE) break;
  }
  // Without its groups a peer may do less, never more.
  peer.groups.clear();
  return peer;
}

}  // namespace

UnixListener::UnixListener(std::string path, int listen_fd, int wake_fd)
    : path_(std::move(path)), listen_fd_(listen_fd), wake_fd_(wake_fd) {}

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Bind(
    std::string path, mode_t mode) {
  const size_t longest = sizeof(sockaddr_un{}.sun_path) - 1;
  if (path.empty() || path.size() > longest) {
    return absl::InvalidArgumentError(
        absl::StrCat("control socket \"", path, "\": ", path.size(),
                     " bytes; a path of 1 to ", longest, " bytes is allowed"));
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return SystemError(path, "cannot make a socket", errno);
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    const int error = errno;
    close(fd);
    return SystemError(path, "cannot make an eventfd", error);
  }
  // Owns both from here on.
  std::unique_ptr<UnixListener> listener(
      new UnixListener(std::move(path), fd, wake));
  int error = BindTo(fd, listener->path_);
  if (error == EADDRINUSE) {
    DFL_RETURN_IF_ERROR(RemoveStale(listener->path_));
    error = BindTo(fd, listener->path_);
  }
  if (error != 0) return SystemError(listener->path_, "cannot bind", error);
  struct stat info{};
  if (lstat(listener->path_.c_str(), &info) == 0) {
    listener->device_ = info.st_dev;
    listener->inode_ = info.st_ino;
  }
  // Nobody can connect before listen, so there is no moment of another mode.
  if (chmod(listener->path_.c_str(), mode) != 0) {
    return SystemError(listener->path_, "cannot set its mode", errno);
  }
  if (listen(fd, kBacklog) != 0) {
    return SystemError(listener->path_, "cannot listen", errno);
  }
  return listener;
}

UnixListener::~UnixListener() {
  Stop();
  close(listen_fd_);
  close(wake_fd_);
}

void UnixListener::Start(std::function<void(int fd)> on_connection) {
  DFL_CHECK(!thread_.joinable());
  thread_ = std::thread(
      [this, handler = std::move(on_connection)] { Accept(handler); });
}

void UnixListener::Stop() {
  if (stopped_) return;
  stopped_ = true;
  const uint64_t one = 1;
  DFL_CHECK(write(wake_fd_, &one, sizeof(one)) == sizeof(one));
  if (thread_.joinable()) thread_.join();
  struct stat info{};
  if (inode_ != 0 && lstat(path_.c_str(), &info) == 0 &&
      info.st_dev == device_ && info.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

std::optional<UnixPeer> UnixListener::PeerOf(int fd) const {
  absl::MutexLock lock(&mutex_);
  const auto found = peers_.find(fd);
  if (found == peers_.end()) return std::nullopt;
  return found->second;
}

void UnixListener::Accept(const std::function<void(int fd)>& on_connection) {
  while (true) {
    pollfd waits[2] = {{wake_fd_, POLLIN, 0}, {listen_fd_, POLLIN, 0}};
    if (poll(waits, 2, -1) < 0 && errno != EINTR) return;
    if (waits[0].revents != 0) return;
    const int fd =
        accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
          errno == ENOBUFS) {
        pollfd wake = {wake_fd_, POLLIN, 0};
        poll(&wake, 1, kRetryMilliseconds);
      }
      continue;
    }
    const std::optional<UnixPeer> peer = PeerAt(fd);
    {
      absl::MutexLock lock(&mutex_);
      peers_.erase(fd);
      if (peer.has_value()) peers_.emplace(fd, *peer);
    }
    on_connection(fd);
  }
}

}  // namespace dfl::control
