// Links: who is connected, one link a peer, and when to dial again.
//
// Addresses are dialled at once, and after a failure or a loss again with a
// jittered, doubling back-off. Of two links to one peer the one that the
// smaller id dialled stays, so both ends keep the same one; of two that one end
// dialled the newer stays, for that end has given the older up. A peer that
// comes back with a new incarnation replaces its old link. A peer that keeps
// sending what nobody could take is shut out for a while, see offences.h: its
// link is closed, and it is neither dialled nor let in.
//
// Loop only. Pure: all time and traffic goes through ports.
#ifndef DFL_RUNTIME_LINKS_LINKS_H_
#define DFL_RUNTIME_LINKS_LINKS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/base/rng.h"
#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/transport.h"
#include "daemon/runtime/links/offences.h"

namespace dfl::runtime {

struct LinksOptions {
  NodeId self;
  uint64_t seed = 1;  // of the jitter
  absl::Duration first_backoff = absl::Milliseconds(200);
  absl::Duration longest_backoff = absl::Seconds(10);
  // A link that is lost earlier counts as a failure to connect, so that a peer
  // that accepts and closes again is not dialled at full speed.
  absl::Duration steady_after = absl::Seconds(2);
  OffenceOptions offences = {};
};

class Links : public ports::Transport::Handler {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // `restarted`: not the incarnation that was linked before.
    virtual void OnPeerUp(const NodeId& peer, bool restarted) = 0;
    virtual void OnPeerDown(const NodeId& peer, const absl::Status& reason) = 0;
    virtual void OnPeerFrame(const NodeId& peer, ports::Frame frame) = 0;
    virtual void OnPeerWritable(const NodeId& peer) = 0;
    // An address was tried and nobody answered there.
    virtual void OnAddressFailed(const std::string& address) = 0;
  };

  // What is known of one peer.
  struct Peer {
    ports::LinkId link = 0;  // 0: not linked
    uint64_t incarnation = 0;
    bool dialled_by_us = false;
    absl::Time since;     // when the link came up
    std::string address;  // dialled, or as it advertises
    std::string last_error;
    int64_t bytes_sent = 0;
    int64_t bytes_received = 0;
  };

  // What is known of one address that is dialled.
  struct Address {
    bool dialling = false;
    int64_t failures = 0;  // in a row, to connect or to stay connected
    ports::TimerId timer = 0;
    NodeId node;  // who answered there last; may be empty
    std::string last_error;
    bool tried = false;  // at least one dial has ended
  };

  // All must outlive it; it becomes the transport's handler.
  Links(LinksOptions options, ports::Loop& loop, ports::Transport& transport,
        ports::EventSink& events, Listener& listener);
  ~Links() override;

  // Errors: ALREADY_EXISTS.
  absl::Status AddAddress(const std::string& address);
  // Stops dialling it and closes the link that came of it.
  // Errors: NOT_FOUND.
  absl::Status RemoveAddress(const std::string& address);

  // A peer whose queue has no room even for a control frame has stopped
  // reading: its link is closed.
  // Errors: NOT_FOUND when `peer` is not linked; otherwise the transport's.
  absl::Status Send(const NodeId& peer, ports::Frame frame);

  // `peer` has sent something that no honest node sends, as `what` says.
  void Offend(const NodeId& peer, const std::string& what);

  bool IsUp(const NodeId& peer) const;
  const std::map<NodeId, Peer>& peers() const { return peers_; }
  const std::map<std::string, Address>& addresses() const { return addresses_; }

  // ports::Transport::Handler
  void OnLinkUp(ports::LinkId link, const ports::PeerIdentity& identity,
                const std::string& dialled_address) override;
  void OnDialFailed(const std::string& name,
                    const absl::Status& status) override;
  void OnFrame(ports::LinkId link, ports::Frame frame) override;
  void OnWritable(ports::LinkId link) override;
  void OnLinkDown(ports::LinkId link, const absl::Status& reason) override;

 private:
  void Dial(const std::string& name);
  void DialLater(const std::string& name);
  // The address's peer is linked, so there is nothing to dial.
  bool Satisfied(const Address& address) const;
  // Whether a second link to a peer should take the place of the first.
  bool PrefersNew(const Peer& existing, const ports::PeerIdentity& identity,
                  bool dialled_by_us) const;

  const LinksOptions options_;
  ports::Loop& loop_;
  ports::Transport& transport_;
  ports::EventSink& events_;
  Listener& listener_;
  Rng rng_;
  std::map<NodeId, Peer> peers_;
  // Into peers_, which nothing leaves.
  absl::btree_map<ports::LinkId, std::map<NodeId, Peer>::value_type*> by_link_;
  std::map<std::string, Address> addresses_;
  Offences offences_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_LINKS_LINKS_H_
