// What gRPC is told of TLS: who this process is, and who may connect. One
// object serves all listeners and dials of a process.
//
//   shows    the newest credentials: a dial at once, a listener within two
//            seconds, for gRPC reads them from a file that it watches
//   checks   what a peer presents, by tls::CheckPeer, against the newest bundle
//            and bans, at once
//   counts   who was refused, by reason
//
// gRPC's own check of chains is off: it would refuse without telling anybody
// why, and by a bundle that is up to two seconds old. A listener demands a
// certificate, and no connection gets past its handshake without Check.
//
// Thread-safe. Channels and servers may outlive it: they are refused then, but
// for what they have connected.
#ifndef DFL_NET_NETWORK_SECURITY_H_
#define DFL_NET_NETWORK_SECURITY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/net/handshake_log.h"
#include "daemon/tls/credentials.h"
#include "daemon/tls/identity.h"
#include "daemon/tls/peer_check.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace dfl::net {

class NetworkSecurity {
 public:
  // `folder` is made, or must belong to this user with rights for nobody else.
  // It holds the file that gRPC watches; the operator's own files would break
  // every new handshake while one of them is being replaced. The file is
  // removed at the end.
  // Errors: as dfl::FileError; PERMISSION_DENIED when the folder is not ours
  // alone.
  static absl::StatusOr<std::unique_ptr<NetworkSecurity>> Create(
      const std::string& folder);
  ~NetworkSecurity();
  NetworkSecurity(const NetworkSecurity&) = delete;
  NetworkSecurity& operator=(const NetworkSecurity&) = delete;

  // From now on shown and trusted. On an error the former ones stay.
  // Errors: as dfl::FileError.
  absl::Status Use(std::shared_ptr<const tls::Credentials> credentials);
  // Null before the first Use: until then every handshake fails.
  std::shared_ptr<const tls::Credentials> credentials() const;

  // Exactly these are banned from now on.
  void SetBanned(absl::Span<const tls::Identity> banned);
  bool IsBanned(const tls::Identity& identity) const;

  // Grows with each Use and SetBanned: whoever was checked before is to be
  // checked again.
  int64_t generation() const;

  // Whether a peer of one of `roles` is admitted. Counts a refusal.
  tls::PeerVerdict Check(const tls::PresentedChain& presented,
                         absl::Span<const tls::Role> roles, absl::Time now);

  void CountRefusal(absl::string_view reason);
  // By reason: the names of tls::PeerFault, those of bounded_acceptor.h and
  // handshake_log.h, and "not-ready" for what came before the first Use.
  std::map<std::string, int64_t> refusals() const;

  // For a listener that admits `roles`.
  std::shared_ptr<grpc::ServerCredentials> ServerCredentials(
      std::vector<tls::Role> roles);

  // For one dial to a peer of `roles`. `on_refused` is called on gRPC's threads
  // when we refuse the peer; it may be null.
  // Errors: UNAVAILABLE before the first Use.
  absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ChannelCredentials(
      std::vector<tls::Role> roles,
      std::function<void(const tls::PeerVerdict& verdict)> on_refused);

 private:
  class State;
  class Verifier;

  explicit NetworkSecurity(std::string folder);

  const std::string identity_path_;
  const std::shared_ptr<State> state_;  // shared with gRPC's verifiers
  const HandshakeLog handshake_log_;
};

}  // namespace dfl::net

#endif  // DFL_NET_NETWORK_SECURITY_H_
