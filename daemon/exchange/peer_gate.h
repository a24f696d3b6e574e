// Who may have a link: by what a peer's Hello says, and in a secured network by
// what its certificate says as well.
#ifndef DFL_EXCHANGE_PEER_GATE_H_
#define DFL_EXCHANGE_PEER_GATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/exchange/proto_frames.h"
#include "daemon/exchange/stream.h"
#include "daemon/net/network_security.h"
#include "daemon/ports/transport.h"
#include "daemon/tls/peer_check.h"
#include "grpcpp/grpcpp.h"

namespace dfl::exchange {

// Those who have a link.
const std::vector<tls::Role>& PeerRoles();

// Why we refused the peer of a dial. Thread-safe.
class DialRefusal {
 public:
  void Set(const tls::PeerVerdict& verdict) ABSL_LOCKS_EXCLUDED(mutex_);
  // "" when we did not refuse it.
  std::string text() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe.
class PeerGate {
 public:
  // `security` outlives it. Null: the network is in plain text, and a peer is
  // who it says. Then `cluster` is the network that this node says it is of,
  // and peers must say the same: that keeps apart who meets by mistake, and
  // nobody who means harm.
  explicit PeerGate(net::NetworkSecurity* security, std::string cluster = "")
      : security_(security), cluster_(std::move(cluster)) {}

  bool secured() const { return security_ != nullptr; }

  // What this node says of itself.
  pb::Hello MakeHello(const ports::PeerIdentity& self, uint64_t nonce) const;

  // A channel to `address` that does not connect yet. `refusal` is told when we
  // refuse the peer in the handshake.
  // Errors: INVALID_ARGUMENT: not an address; UNAVAILABLE while this node has
  // no valid certificate.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect(
      const std::string& address, const grpc::ChannelArguments& arguments,
      std::shared_ptr<DialRefusal> refusal) const;

  // The identity in a greeting. Refusals are counted.
  // Errors: as CheckHello; PERMISSION_DENIED: the certificate is not admitted,
  // it is another's than the Hello says, or the cluster is another.
  absl::StatusOr<ports::PeerIdentity> Admit(const Greeting& greeting,
                                            absl::Time now) const;

  // Whether a peer that was admitted with `certificates` still is. Refusals are
  // counted. Always in plain text.
  tls::PeerVerdict Recheck(const PeerCertificates& certificates,
                           absl::Time now) const;

  // Grows when Recheck may say something else than before.
  int64_t generation() const;
  // The fingerprint of the certificate that this node shows; "" if it has none.
  std::string shown() const;

 private:
  // OK when the peer says the cluster that we say.
  absl::Status CheckCluster(const std::string& said) const;

  net::NetworkSecurity* const security_;
  const std::string cluster_;  // in plain text
};

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_PEER_GATE_H_
