// Whether the peers of live links are still admitted, and how a link outlives
// the certificates that it began with.
//
// A TLS connection shows certificates once, at its start. Later they expire,
// and authorities are replaced. So the end that dialled opens a second
// connection for a moment and says the Hello of the live link on a Control
// stream of it. From then on both ends hold the link by what this connection
// has shown. Nobody but the two ends knows the link's nonce, so the proof is
// about that link.
//
// The dialler renews when the certificate that it shows has changed, and as a
// last try when the peer's does not hold any more. A listener cannot dial, and
// ends a link whose dialler has not renewed in time. A ban ends it at once.
#ifndef DFL_EXCHANGE_LINK_UPKEEP_H_
#define DFL_EXCHANGE_LINK_UPKEEP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/exchange/grpc_calls.h"
#include "daemon/exchange/grpc_options.h"
#include "daemon/exchange/peer_gate.h"
#include "daemon/exchange/stream.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/transport.h"

namespace dfl::exchange {

// Loop only.
class LinkUpkeep {
 public:
  struct Link {
    ports::PeerIdentity peer;
    std::string dialled;  // "" when the peer dialled
    uint64_t nonce = 0;
    PeerCertificates certificates;  // that the peer showed last
    std::string shown;              // fingerprint of what this node showed last
  };
  // Ends a link that is in it.
  using EndLink =
      std::function<void(ports::LinkId id, const absl::Status& reason)>;

  // All must outlive it, `options` and `gate` as references. `wake` is called
  // when a stream of a renewal has something to be taken.
  LinkUpkeep(ports::Loop& loop, const GrpcTransportOptions& options,
             const PeerGate& gate, std::shared_ptr<CallRegistry> registry,
             std::function<void(StreamId)> wake, EndLink end);
  ~LinkUpkeep() { Close(); }
  LinkUpkeep(const LinkUpkeep&) = delete;
  LinkUpkeep& operator=(const LinkUpkeep&) = delete;

  // A link is up; in plain text nothing is done.
  void Add(ports::LinkId id, Link link);
  // An unknown one is ignored.
  void Remove(ports::LinkId id);

  // Looks at every link when something has changed, else every few seconds.
  void Recheck(absl::Time now);

  // `peer` was admitted with `certificates` on a new connection. True when it
  // has a link of this nonce, which it dialled: these count for it from now on.
  bool Renew(const ports::PeerIdentity& peer, uint64_t nonce,
             const PeerCertificates& certificates);

  // Links that this node dialled and whose peer has not seen the newest
  // certificate yet. While there are any in the network, the authority that
  // signed the former ones must stay.
  int64_t unrenewed() const;

  // A stream of a renewal; null if it is none.
  std::shared_ptr<Stream> Find(StreamId id) const;
  void OnEvent(StreamId id, const Stream::Event& event);

  // Forgets all. May be called on any thread once the loop has stopped.
  void Close();

 private:
  struct Renewal {
    ports::LinkId link = 0;
    std::shared_ptr<Stream> stream;
    std::shared_ptr<grpc::Channel> channel;
    std::shared_ptr<DialRefusal> refusal;
    std::string shown;
    // Why the link ends if this fails; OK: it goes on, and another is tried.
    absl::Status otherwise;
    ports::TimerId timer = 0;
  };

  bool IsRenewing(ports::LinkId id) const;
  void RecheckOne(ports::LinkId id, absl::Time now);
  void StartRenewal(ports::LinkId id, const absl::Status& otherwise);
  // Takes a renewal out, which is here, and ends its stream.
  Renewal Take(StreamId id);
  void Fail(StreamId id, const absl::Status& why);

  ports::Loop& loop_;
  const GrpcTransportOptions& options_;
  const PeerGate& gate_;
  const std::shared_ptr<CallRegistry> registry_;
  const std::function<void(StreamId)> wake_;
  const EndLink end_;
  std::map<ports::LinkId, Link> links_;
  std::map<StreamId, Renewal> renewals_;
  int64_t checked_generation_ = -1;
  absl::Time checked_at_ = absl::InfinitePast();
  // False: timers find nothing any more.
  const std::shared_ptr<bool> open_ = std::make_shared<bool>(true);
};

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_LINK_UPKEEP_H_
