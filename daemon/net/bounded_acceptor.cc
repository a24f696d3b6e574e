#include "daemon/net/bounded_acceptor.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "daemon/base/check.h"
#include "daemon/base/host_port.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/try_listen.h"

namespace dfl::net {
namespace {

constexpr int kBacklog = 256;
// After accept failed for want of descriptors.
constexpr int kRetryMilliseconds = 100;
constexpr int kEventsAtOnce = 64;

// What an event is about: the wake-up, a listener or a connection.
constexpr uint64_t kWake = 0;
constexpr uint64_t kFirstListener = 1;
constexpr uint64_t kFirstConnection = uint64_t{1} << 32;

absl::Status ListenError(const HostPort& address,
                         const ListenFailure& failure) {
  const std::string place = absl::StrCat(
      "cannot listen on ", address.ToString(), ": ", failure.text());
  if (failure.resolve_error != 0) {
    return absl::UnavailableError(
        absl::StrCat(place, "; use a name or an address of this machine"));
  }
  switch (failure.error) {
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

// A wildcard of either family is one of both, as with gRPC's own listener.
Listening ListenAtBoth(const HostPort& address) {
  if (!IsWildcard(address.host)) return ListenAt(address, kBacklog);
  Listening both = ListenAt({"::", address.port}, kBacklog);
  const int error = both.failure.error;
  if (both.failure.ok() || error == EADDRINUSE || error == EACCES) return both;
  return ListenAt(address, kBacklog);  // there is no IPv6
}

// "203.0.113.7:4711" or "fe80::1:4711": an address that IPv6 maps is IPv4's,
// and there is no zone.
std::string RemoteOf(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host,
                  sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "";
  }
  absl::string_view plain(host);
  plain = plain.substr(0, plain.find('%'));
  if (absl::StrContains(plain, ".")) absl::ConsumePrefix(&plain, "::ffff:");
  return absl::StrCat(plain, ":", port);
}

// The same of what gRPC says: "ipv4:203.0.113.7:4711",
// "ipv6:%5Bfe80::1%25eth0%5D:4711".
std::string RemoteOf(absl::string_view peer) {
  std::string text =
      absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "ipv4:")) return std::string(rest);
  absl::ConsumePrefix(&rest, "ipv6:");
  const absl::StatusOr<HostPort> parsed = ParseHostPort(rest);
  if (!parsed.ok()) return "";
  return absl::StrCat(parsed->host.substr(0, parsed->host.find('%')), ":",
                      parsed->port);
}

// The first bytes of a TLS handshake record: its type, and the version, which
// says 3.x for ever.
enum class Opening { kTls, kOther, kNothing, kEnd };

Opening Look(int fd) {
  unsigned char first[2];
  const ssize_t got = recv(fd, first, sizeof(first), MSG_PEEK);
  if (got == 0) return Opening::kEnd;
  if (got < 0) {
    return errno == EAGAIN || errno == EINTR ? Opening::kNothing
                                             : Opening::kEnd;
  }
  if (first[0] != 0x16 || (got > 1 && first[1] != 0x03)) {
    return Opening::kOther;
  }
  return Opening::kTls;
}

}  // namespace

BoundedAcceptor::BoundedAcceptor(AcceptorOptions options, int epoll_fd,
                                 int wake_fd)
    : options_(std::move(options)), epoll_fd_(epoll_fd), wake_fd_(wake_fd) {}

absl::StatusOr<std::unique_ptr<BoundedAcceptor>> BoundedAcceptor::Bind(
    const std::vector<std::string>& addresses, AcceptorOptions options) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWake;
  if (epoll < 0 || wake < 0 ||
      epoll_ctl(epoll, EPOLL_CTL_ADD, wake, &event) != 0) {
    const int error = errno;
    if (epoll >= 0) close(epoll);
    if (wake >= 0) close(wake);
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot listen: ", std::strerror(error),
                     "; raise the limit of open files"));
  }
  // Owns both from here on.
  std::unique_ptr<BoundedAcceptor> acceptor(
      new BoundedAcceptor(std::move(options), epoll, wake));
  for (const std::string& address : addresses) {
    DFL_RETURN_IF_ERROR(acceptor->Listen(address));
  }
  return acceptor;
}

absl::Status BoundedAcceptor::Listen(const std::string& address) {
  absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("address \"", address, "\": ", parsed.status().message(),
                     "; ", kHostPortForms));
  }
  const Listening listening = ListenAtBoth(*parsed);
  if (!listening.failure.ok()) return ListenError(*parsed, listening.failure);
  for (const int fd : listening.fds) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kFirstListener + listeners_.size();
    listeners_.push_back(fd);
    if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "cannot listen on ", address, ": ", std::strerror(errno)));
    }
  }
  parsed->port = listening.port;
  addresses_.push_back(parsed->ToString());
  return absl::OkStatus();
}

BoundedAcceptor::~BoundedAcceptor() {
  Stop();
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, connection] : connections_) close(connection.fd);
  }
  close(wake_fd_);
  close(epoll_fd_);
}

void BoundedAcceptor::Start(std::function<void(int fd)> on_connection) {
  DFL_CHECK(!thread_.joinable());
  thread_ =
      std::thread([this, handler = std::move(on_connection)] { Run(handler); });
}

void BoundedAcceptor::Stop() {
  if (stopped_) return;
  stopped_ = true;
  const uint64_t one = 1;
  DFL_CHECK(write(wake_fd_, &one, sizeof(one)) == sizeof(one));
  if (thread_.joinable()) thread_.join();
  for (const int fd : listeners_) close(fd);
  listeners_.clear();
}

void BoundedAcceptor::Admitted(absl::string_view remote,
                               const std::string& peer) {
  const std::string key = RemoteOf(remote);
  absl::MutexLock lock(&mutex_);
  std::vector<ConnectionId> ids;
  const auto [begin, end] = by_remote_.equal_range(key);
  for (auto it = begin; it != end; ++it) ids.push_back(it->second);
  for (const ConnectionId id : ids) Admit(id, peer);
}

void BoundedAcceptor::Admit(ConnectionId id, const std::string& peer) {
  Connection& connection = connections_.at(id);
  if (connection.silent || pending_.count(id) == 0) return;
  if (!peer.empty()) {
    int64_t& count = of_peer_[peer];
    if (count >= options_.max_of_peer) {
      Count(kTooManyOfPeer);
      End(id);
      return;
    }
    ++count;
    connection.peer = peer;
  }
  pending_.erase(id);
}

int64_t BoundedAcceptor::pending() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(pending_.size());
}

int64_t BoundedAcceptor::connections() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(connections_.size());
}

std::map<std::string, int64_t> BoundedAcceptor::refusals() const {
  absl::MutexLock lock(&mutex_);
  return {refusals_.begin(), refusals_.end()};
}

void BoundedAcceptor::Run(const std::function<void(int fd)>& on_connection) {
  epoll_event events[kEventsAtOnce];
  while (true) {
    const int count =
        epoll_wait(epoll_fd_, events, kEventsAtOnce, NextDeadline());
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      const uint64_t what = events[i].data.u64;
      if (what == kWake) return;
      const int fd = what < kFirstConnection
                         ? Accept(listeners_[what - kFirstListener])
                         : OnEvent(what, events[i].events);
      if (fd >= 0) on_connection(fd);
    }
    EndLate();
  }
}

int BoundedAcceptor::NextDeadline() const {
  absl::MutexLock lock(&mutex_);
  if (pending_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      connections_.at(*pending_.begin()).deadline - Clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

void BoundedAcceptor::EndLate() {
  absl::MutexLock lock(&mutex_);
  const Clock::time_point now = Clock::now();
  while (!pending_.empty() &&
         connections_.at(*pending_.begin()).deadline <= now) {
    EndOldest(kTooSlow);
  }
}

int BoundedAcceptor::Accept(int listener) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  const int fd = accept4(listener, reinterpret_cast<sockaddr*>(&address),
                         &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM &&
        errno != ENOBUFS) {
      return -1;
    }
    {
      absl::MutexLock lock(&mutex_);
      if (!pending_.empty()) {
        EndOldest(kCrowdedOut);
        return -1;
      }
    }
    pollfd wake = {wake_fd_, POLLIN, 0};
    poll(&wake, 1, kRetryMilliseconds);
    return -1;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  absl::MutexLock lock(&mutex_);
  if (!MakeRoom()) {
    close(fd);
    Count(kTooMany);
    return -1;
  }
  const ConnectionId id = kFirstConnection + ++last_id_;
  Connection& connection = connections_[id];
  connection.fd = fd;
  connection.remote = RemoteOf(address, length);
  connection.deadline =
      Clock::now() + absl::ToChronoMilliseconds(options_.patience);
  pending_.insert(id);
  by_remote_.emplace(connection.remote, id);
  if (!options_.tls) return HandOn(id);
  Watch(id, EPOLLIN);
  return -1;
}

bool BoundedAcceptor::MakeRoom() {
  const auto pending = static_cast<int64_t>(pending_.size());
  const auto all = static_cast<int64_t>(connections_.size());
  if (pending < options_.max_pending && all < options_.max_connections) {
    return true;
  }
  if (pending == 0) return false;
  EndOldest(kCrowdedOut);
  return true;
}

int BoundedAcceptor::OnEvent(ConnectionId id, uint32_t events) {
  absl::MutexLock lock(&mutex_);
  const auto found = connections_.find(id);
  if (found == connections_.end()) return -1;  // ended by an earlier event
  if (!found->second.silent) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) End(id);
    return -1;
  }
  switch (Look(found->second.fd)) {
    case Opening::kTls:
      return HandOn(id);
    case Opening::kOther:
      Count(kPlaintext);
      End(id);
      return -1;
    case Opening::kEnd:
      Count(kAbandoned);
      End(id);
      return -1;
    case Opening::kNothing:
      break;
  }
  return -1;
}

int BoundedAcceptor::HandOn(ConnectionId id) {
  Connection& connection = connections_.at(id);
  const int fd = connection.fd;
  const int ours = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (ours < 0) {
    Count(kCrowdedOut);
    End(id);
    return -1;
  }
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  connection.fd = ours;
  connection.silent = false;
  Watch(id, 0);  // the end of a connection is always told
  return fd;
}

void BoundedAcceptor::Watch(ConnectionId id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  // If the system has no room for it, its time runs out.
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, connections_.at(id).fd, &event);
}

void BoundedAcceptor::End(ConnectionId id) {
  const auto found = connections_.find(id);
  const Connection& connection = found->second;
  // gRPC may hold a duplicate: closing ours would end nothing.
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, connection.fd, nullptr);
  shutdown(connection.fd, SHUT_RDWR);
  close(connection.fd);
  pending_.erase(id);
  const auto [begin, end] = by_remote_.equal_range(connection.remote);
  for (auto it = begin; it != end; ++it) {
    if (it->second == id) {
      by_remote_.erase(it);
      break;
    }
  }
  const auto of_peer = of_peer_.find(connection.peer);
  if (of_peer != of_peer_.end() && --of_peer->second == 0) {
    of_peer_.erase(of_peer);
  }
  connections_.erase(found);
}

void BoundedAcceptor::EndOldest(absl::string_view reason) {
  Count(reason);
  End(*pending_.begin());
}

void BoundedAcceptor::Count(absl::string_view reason) {
  const auto found = refusals_.find(reason);
  if (found != refusals_.end()) {
    ++found->second;
  } else {
    refusals_.emplace(reason, 1);
  }
  if (options_.on_refusal != nullptr) options_.on_refusal(reason);
}

}  // namespace dfl::net
