// Links: who is connected, one link a peer, and when to dial again.
//
// Which addresses are dialled, and when, is in dialler.h. Of two links to one
// peer the one that the smaller id dialled stays, so both ends keep the same
// one; of two that one end dialled the newer stays, for that end has given the
// older up.
//
// Another incarnation of a linked peer is a restart, or another daemon of the
// same name, as a cloned image makes one. The link that is there is asked
// whether it lives. If it answers, it stays, and the newcomer is refused, each
// time it tries; both are told. If not, it is closed, and the newcomer is let
// in when it dials again. So a name never changes hands while its holder lives.
// The same holds for a name that is linked elsewhere in the network, as far as
// SetDistant's object knows.
//
// A peer that keeps sending what nobody could take is shut out for a while, see
// offences.h: its link is closed, and it is neither dialled nor let in.
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
#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/transport.h"
#include "daemon/runtime/links/dialler.h"
#include "daemon/runtime/links/link_times.h"
#include "daemon/runtime/links/offences.h"
#include "daemon/runtime/links/rivals.h"

namespace dfl::runtime {

struct LinksOptions {
  NodeId self;
  uint64_t seed = 1;  // as the next two: DiallerOptions
  absl::Duration first_backoff = absl::Milliseconds(200);
  absl::Duration longest_backoff = absl::Seconds(10);
  // A link that is lost earlier counts as a failure to connect, so that a peer
  // that accepts and closes again is not dialled at full speed.
  absl::Duration steady_after = absl::Seconds(2);
  // A peer whose link another incarnation asks for has this time to answer.
  absl::Duration probe_within = absl::Seconds(1);
  OffenceOptions offences = {};
};

// What is known of a peer that is not linked is kept of the last so many.
inline constexpr size_t kMostPeersKept = 1024;

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
    absl::Time heard;     // when its last frame came, or the link came up
    std::string address;  // dialled, or as it advertises
    std::string last_error;
    // Frames that have left, not those that wait or were lost with a link; as
    // of the last frame or CountSent.
    int64_t bytes_sent = 0;
    int64_t bytes_received = 0;
    int64_t bytes_queued = 0;   // the same with those that wait
    ports::LinkId counted = 0;  // the link of those
    // Over all its links: of its answers to probes, and of whole transfers.
    LinkTimes times;
    LinkTimes transfers;
  };

  // All must outlive it; it becomes the transport's handler.
  Links(LinksOptions options, ports::Loop& loop, ports::Transport& transport,
        ports::EventSink& events, Listener& listener);
  ~Links() override;

  // Dials it until it is removed: an address that a person gave.
  // Errors: ALREADY_EXISTS.
  absl::Status AddAddress(const std::string& address);
  // Takes an AddAddress back. When nobody else claims the address, it is not
  // dialled any more, and the link that came of it is closed.
  // Errors: NOT_FOUND.
  absl::Status RemoveAddress(const std::string& address);

  // As Dialler::Claim, for a part of the node that is called `owner`, not "".
  void Claim(const std::string& owner, const std::string& address,
             const NodeId& node = NodeId(),
             absl::Duration hold = absl::ZeroDuration()) {
    dialler_.Claim(owner, address, node, hold);
  }
  // Takes it back. A link that came of it stays. One that is not there is
  // ignored.
  void Release(const std::string& owner, const std::string& address) {
    dialler_.Release(owner, address);
  }
  // Closes the link of `peer`, if it has one. An address of it that is claimed
  // is dialled again.
  void Drop(const NodeId& peer, const absl::Status& reason);

  // A peer whose queue has no room even for a control frame has stopped
  // reading: its link is closed.
  // Errors: NOT_FOUND when `peer` is not linked; otherwise the transport's.
  absl::Status Send(const NodeId& peer, ports::Frame frame);

  // Whether a frame for others that `peer` would pass on, of so many bytes,
  // leaves its queue the room that frames of this node's own may need.
  bool HasRoom(const NodeId& peer, int64_t bytes) const;

  // An answer of `peer` took `time`.
  void NoteAnswer(const NodeId& peer, absl::Duration time);
  // None came within `deadline`.
  void NoteNoAnswer(const NodeId& peer, absl::Duration deadline);
  // How long to wait for an answer of `peer`, see LinkTimes.
  absl::Duration AnswerDeadline(const NodeId& peer,
                                const DeadlineBounds& bounds) const;

  // A transfer between this node and `peer` took `time`, once it had begun; or
  // would have, had it not been given up.
  void NoteTransfer(const NodeId& peer, absl::Duration time);
  // How long a request and a transfer in answer to it spend on the way, at the
  // most that is to be expected; 0 while nothing is known.
  absl::Duration TimeOver(const NodeId& peer) const;

  // See Rivals::SetDistant.
  void SetDistant(DistantNodes* distant) { rivals_.SetDistant(distant); }

  // Brings Peer::bytes_sent up to date.
  void CountSent();

  // `peer` has sent something that no honest node sends, as `what` says.
  void Offend(const NodeId& peer, const std::string& what);

  bool IsUp(const NodeId& peer) const;
  const std::map<NodeId, Peer>& peers() const { return peers_; }
  const Rivals& rivals() const { return rivals_; }
  const std::map<std::string, Dialler::Address>& addresses() const {
    return dialler_.addresses();
  }

  // ports::Transport::Handler
  absl::Status Admit(const ports::PeerIdentity& peer) override;
  void OnLinkUp(ports::LinkId link, const ports::PeerIdentity& identity,
                const std::string& dialled_address) override;
  void OnDialFailed(const std::string& name,
                    const absl::Status& status) override;
  void OnFrame(ports::LinkId link, ports::Frame frame) override;
  void OnWritable(ports::LinkId link) override;
  void OnLinkDown(ports::LinkId link, const absl::Status& reason) override;

 private:
  // Whether a link that has come up is not wanted; then it is closed.
  bool TurnAway(ports::LinkId link, const ports::PeerIdentity& identity,
                const std::string& dialled_address);
  // `queued` bytes more were handed to the transport.
  void CountSent(Peer& peer, int64_t queued);
  // Whether a second link to a peer should take the place of the first.
  bool PrefersNew(const Peer& existing, const ports::PeerIdentity& identity,
                  bool dialled_by_us) const;

  const LinksOptions options_;
  ports::Loop& loop_;
  ports::Transport& transport_;
  ports::EventSink& events_;
  Listener& listener_;
  std::map<NodeId, Peer> peers_;
  // Into peers_, which no peer leaves that is linked.
  absl::btree_map<ports::LinkId, std::map<NodeId, Peer>::value_type*> by_link_;
  Rivals rivals_;
  Offences offences_;
  Dialler dialler_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_LINKS_LINKS_H_
