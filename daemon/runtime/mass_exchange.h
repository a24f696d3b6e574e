// Mass: what the algorithm gives away and takes, and the tracker epochs that
// bound what can be lost of it (parcels.h).
//
// Loop only.
#ifndef DFL_RUNTIME_MASS_EXCHANGE_H_
#define DFL_RUNTIME_MASS_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "daemon/base/ids.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/header.h"
#include "daemon/codec/mass_codec.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/doubts.h"
#include "daemon/runtime/epoch_belief.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/mass_members.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/parcels.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/presence.h"
#include "daemon/runtime/rejections.h"
#include "daemon/runtime/transfers/transfers.h"

namespace dfl::runtime {

// Of mass for a node that has written its last checkpoint.
Refusal RefusedBySuspended();

class MassExchange : private Doubts::Listener {
 public:
  // All must outlive it.
  MassExchange(OwnState& own, PeerTable& peers, Links& links,
               Transfers& transfers, Rejections& rejections, Presence& presence,
               ports::Loop& loop);
  ~MassExchange() override { loop_.Cancel(timer_); }

  // What is known of members that are not linked; it must outlive the last call
  // of this object, but for the destructor. Before, nothing is known.
  void SetMembers(MassMembers& members) { members_ = &members; }

  const Parcels& parcels() const { return parcels_; }
  // How the plan wants mass to be coded, for the algorithm.
  core::MassCode* code() { return &codec_; }

  // The present algorithm gives some.
  bool Gives() const { return own_.algorithm.get() && own_.run.gives_mass(); }
  // What the node says of its epoch.
  uint64_t EpochToTell() const { return Gives() ? parcels_.epoch() : 0; }

  void Do(const core::Give& action) { parcels_.Send(action); }

  // Why mass of `from` is not taken; nullopt: it is. Enters its epoch when that
  // is a higher one.
  std::optional<Refusal> Objection(const NodeId& from,
                                   const ports::TransferBegin& begin);
  // Mass of `from` is of the tracker epoch `epoch`, which is over: tells it so.
  Refusal OlderEpoch(const NodeId& from, uint64_t epoch);
  // Admitted mass has come. Returns what it adds up to, for the giver: as
  // Transfers::Listener::OnMass.
  double OnMass(const NodeId& from, uint64_t tracker_epoch, uint64_t sequence,
                int64_t round, std::vector<double> scalars,
                std::unique_ptr<codec::DecodedMessage> message);

  // The link to `peer` is up. Where it comes back with another incarnation it
  // may have lost what it had taken from us and given to us. Until it says, it
  // is held: it takes no part, and no mass travels between it and us.
  void OnPeerUp(const NodeId& peer, bool restarted);
  // MassMembers says something else of `peer`, or its link is gone. One that is
  // said to have started again since its last link is held as well, and met. If
  // it cannot be met within Doubts::kUndecided, it has lost what it held; if it
  // contradicts what was said, nothing has happened.
  void OnMember(const NodeId& peer);
  // `peer` has said its state: follows its epoch, and compares its books with
  // ours where that is due. Where they agree nothing is lost and all goes on.
  // Else it ends the epoch; where that happens too often (epoch_guard.h), the
  // peer stays held until the next epoch or until the guard allows one.
  void OnState(const NodeId& peer, const ports::StateFrame& state);
  // `peer` has said that it is in `epoch`: follows it there.
  void Follow(const NodeId& peer, uint64_t epoch);
  // What this node says of its mass to a peer.
  void Tell(ports::StateFrame& state, const NodeId& to) const;
  // At a boundary: compares books with those that have said theirs before this
  // node knew what it goes on from.
  void CompareBooks();
  // Sends `peer` what it has not taken, if it may be sent to: Parcels::Resume.
  void Resume(const NodeId& peer, bool news);

  // A new run: nothing was given or taken. `again`: one of the same name, with
  // another model or data, begins anew. A neighbour may have missed that, and
  // would take new parcels for repeats of old ones: so the epoch rises.
  void BeginRun(bool again = false) { Void(again ? parcels_.epoch() + 1 : 0); }
  // After a restart with all that was known of `epoch`: mass was exchanged in
  // it with `partners`, each of which is held until its books were compared.
  void GoOn(uint64_t epoch, const std::set<NodeId>& partners);
  // The node has gone back to a state in the midst of its life, of which its
  // neighbours know nothing: what they hold of it agrees with nothing here,
  // whatever the books say. All trackers begin anew, in an epoch above `epoch`
  // and the present one.
  void BeginAbove(uint64_t epoch);
  // With whom mass was exchanged in this epoch.
  const std::set<NodeId>& Partners() const { return parcels_.partners(); }
  // A plan is in force: sets the code, and ends the epoch when somebody that
  // holds mass of it is no member any more.
  void SetCode();
  void DropFormerMembers();
  // The algorithm begins anew: what was given and taken is forgotten here.
  void BeginAlgorithm();
  // Enters the highest epoch that peers have told of.
  void FollowAll();

 private:
  // Doubts::Listener
  bool IsLinked(const NodeId& peer) const override { return links_.IsUp(peer); }
  bool IsMember(const NodeId& peer) const override {
    return own_.run.IsMember(peer);
  }
  bool IsThere(const NodeId& peer) const override {
    return members_ != nullptr && members_->MemoryOf(peer).has_value();
  }
  bool IsDecided(const NodeId& peer) const override;
  void OnDoubted() override {
    if (members_ != nullptr) members_->Meet(doubts_.all());
  }
  void OnLost(const NodeId& peer) override;

  // Parcels may travel to `peer`, whatever its phase.
  bool MayGive(const NodeId& peer) const;
  // It is not known whether `peer` holds what it held; `heard` as Doubts'.
  void Doubt(const NodeId& peer, bool heard = false);
  // The same with one, where that is due; `state` is its last.
  void CompareBooks(const NodeId& peer, const ports::StateFrame& state);
  // What is out is void, and nobody is held any more.
  void Void(uint64_t epoch);
  // Our trackers begin anew, and so shall everybody's.
  void Enter(uint64_t epoch);
  // Enters the next epoch for one that is held, as soon as the guard allows it.
  void ReleaseHeld();
  void OnDelivered(const core::Delivered& delivered);

  OwnState& own_;
  PeerTable& peers_;
  Links& links_;
  ports::Loop& loop_;
  Rejections& rejections_;
  Presence& presence_;
  MassMembers* members_ = nullptr;
  codec::MassCodec codec_;  // of the plan
  EpochBelief epochs_;
  Parcels parcels_;
  std::set<NodeId> held_;
  ports::TimerId timer_ = 0;  // of ReleaseHeld
  Doubts doubts_;             // held as well
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MASS_EXCHANGE_H_
