// Accepts TCP connections for a gRPC server, and bounds how many there are.
// gRPC's own listener bounds neither the connections nor the handshakes.
//
//   silent      connected, and nothing came yet: costs a descriptor, and gRPC
//               does not know of it
//   handshake   its first bytes begin a TLS record: gRPC has it
//   admitted    the service has seen a stream of it with a certificate that was
//               checked
//
// Connections that are not admitted are bounded in number and in time. When one
// more comes, the oldest of them is shut down: a flood costs bounded memory,
// and a member's handshake, which takes a moment, still gets through.
//
// Call order: Bind, Start, Stop. The other methods are thread-safe.
#ifndef DFL_NET_BOUNDED_ACCEPTOR_H_
#define DFL_NET_BOUNDED_ACCEPTOR_H_

#include <chrono>  // NOLINT(build/c++11): a clock that nobody sets
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace dfl::net {

struct AcceptorOptions {
  // Whether connections must begin with a TLS record. Otherwise they are handed
  // on at once.
  bool tls = true;
  // The most connections that are not admitted yet.
  int64_t max_pending = 128;
  // The most connections of any kind.
  int64_t max_connections = 1024;
  // The most admitted connections of one peer, where the service names it.
  int64_t max_of_peer = 8;
  // How long a connection may take until it is admitted.
  absl::Duration patience = absl::Seconds(5);
  // Told of each refusal, by one of the reasons below, on the acceptor's
  // thread. It must not call the acceptor. May be null.
  std::function<void(absl::string_view reason)> on_refusal;
};

// Why a connection was ended. What fails in the handshake itself is counted by
// NetworkSecurity.
inline constexpr absl::string_view kPlaintext = "plaintext";
inline constexpr absl::string_view kAbandoned = "abandoned";  // by the peer
inline constexpr absl::string_view kTooSlow = "handshake-timeout";
inline constexpr absl::string_view kCrowdedOut = "crowded-out";
inline constexpr absl::string_view kTooMany = "too-many-connections";
inline constexpr absl::string_view kTooManyOfPeer = "too-many-of-one-peer";

class BoundedAcceptor {
 public:
  // Listens on every address, "host:port"; with port 0 the system chooses. A
  // name is listened on at all its addresses that are this machine's, and
  // 0.0.0.0 as [::] for both families where there is IPv6.
  // Errors: INVALID_ARGUMENT: not an address; ALREADY_EXISTS: in use;
  // PERMISSION_DENIED: not for this user; UNAVAILABLE: not an address of this
  // machine, or the name has none. Each text names the address and what to do.
  static absl::StatusOr<std::unique_ptr<BoundedAcceptor>> Bind(
      const std::vector<std::string>& addresses, AcceptorOptions options);
  // Stop.
  ~BoundedAcceptor();
  BoundedAcceptor(const BoundedAcceptor&) = delete;
  BoundedAcceptor& operator=(const BoundedAcceptor&) = delete;

  // Where it listens, with the ports that were chosen.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // Calls `on_connection(fd)` on a thread of its own. The callee owns `fd`, a
  // connected, non-blocking stream. Call once.
  void Start(std::function<void(int fd)> on_connection);

  // Accepts no more. Once it has returned, no on_connection runs or follows.
  // Connections that were handed on live on. Idempotent.
  void Stop();

  // The connection from `remote`, as gRPC's ServerContext::peer() names it, is
  // a member's, which `peer` names; "" is nobody's name. It is ended when the
  // peer has too many. An unknown one is ignored.
  void Admitted(absl::string_view remote, const std::string& peer = "")
      ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t pending() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t connections() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::map<std::string, int64_t> refusals() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  using ConnectionId = uint64_t;  // in the order of arrival
  struct Connection {
    // Of ours: the connection itself while it is silent, a duplicate later.
    int fd = -1;
    bool silent = true;
    std::string remote;
    std::string peer;  // who was admitted, if the service named it
    Clock::time_point deadline;
  };

  BoundedAcceptor(AcceptorOptions options, int epoll_fd, int wake_fd);

  absl::Status Listen(const std::string& address);
  void Run(const std::function<void(int fd)>& on_connection);
  // Milliseconds until the oldest pending connection must be admitted; -1:
  // nobody waits.
  int NextDeadline() const ABSL_LOCKS_EXCLUDED(mutex_);
  void EndLate() ABSL_LOCKS_EXCLUDED(mutex_);
  // Both return what is to be handed on, -1 if nothing is.
  int Accept(int listener) ABSL_LOCKS_EXCLUDED(mutex_);
  int OnEvent(ConnectionId id, uint32_t events) ABSL_LOCKS_EXCLUDED(mutex_);
  void Admit(ConnectionId id, const std::string& peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False when there is no room for one more.
  bool MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int HandOn(ConnectionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Watch(ConnectionId id, uint32_t events)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Shuts it down and forgets it.
  void End(ConnectionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndOldest(absl::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(absl::string_view reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const AcceptorOptions options_;
  const int epoll_fd_;
  const int wake_fd_;
  std::vector<int> listeners_;
  std::vector<std::string> addresses_;
  bool stopped_ = false;
  std::thread thread_;

  mutable absl::Mutex mutex_;
  ConnectionId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<ConnectionId, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::set<ConnectionId> pending_ ABSL_GUARDED_BY(mutex_);
  std::multimap<std::string, ConnectionId> by_remote_ ABSL_GUARDED_BY(mutex_);
  // Admitted connections of each named peer that has any.
  std::map<std::string, int64_t> of_peer_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t, std::less<>> refusals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::net

#endif  // DFL_NET_BOUNDED_ACCEPTOR_H_
