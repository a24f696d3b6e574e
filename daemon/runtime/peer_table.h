// What each peer last said of itself, whether it takes part in this node's
// rounds, and what was exchanged with it.
//
// A peer *agrees* when its state is of our run, model and algorithm. It *takes
// part* when it is linked, agrees and trains. The algorithm is told when that
// changes, with one delay: a peer that leaves while it is ahead of our round
// has sent its model of this round, which news of its phase have overtaken.
// Such a peer counts until the boundary. A silent one counts as gone, at once.
//
// Loop only. It sends nothing and calls nobody.
#ifndef DFL_RUNTIME_PEER_TABLE_H_
#define DFL_RUNTIME_PEER_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "daemon/base/ids.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/run_in_force.h"
#include "daemon/runtime/transfers/refusal.h"

namespace dfl::runtime {

// No honest node gets that far, and sums with it do not overflow.
inline constexpr int64_t kLargestStep = int64_t{1} << 53;

class PeerTable {
 public:
  struct Peer {
    ports::StateFrame state;
    bool known = false;      // `state` came over the present link
    bool agrees = false;     // as of the last comparison
    bool active = false;     // takes part, as the algorithm was last told
    bool silent = false;     // no round waits for it (guards/silence.h)
    bool held = false;       // it takes no part: MassExchange::OnPeerUp
    int64_t whole_step = 0;  // of the newest model or mass that came
    int64_t models_sent = 0;
    int64_t models_received = 0;
    int64_t missed = 0;
    int64_t rejected = 0;
    // Why its last message of a model was refused; "": one was taken since.
    std::string refusal;
    int64_t far = 0;  // models that lay too far away
    // Of the model that was taken last from the node's own: root mean square
    // of the difference to that of the own. nullopt: none was looked at.
    std::optional<double> distance;
  };
  enum class Change { kNone, kJoined, kLeft };

  // `linked` says whether a peer's link is up. `run` must outlive the table.
  PeerTable(const RunInForce& run, std::function<bool(const NodeId&)> linked)
      : run_(run), linked_(std::move(linked)) {}

  const std::map<NodeId, Peer>& all() const { return peers_; }

  // The link to `peer` came up or went down: it must say its state anew.
  void OnLink(const NodeId& peer) {
    Peer& p = peers_[peer];
    p.known = p.silent = false;
  }
  // `peer`, whose link is down, is nobody's neighbour: nothing is kept of it.
  void Forget(const NodeId& peer) {
    peers_.erase(peer);
    leaving_.erase(peer);
  }
  // The same for all that are no members any more, and whose links are down.
  void ForgetStrangers();
  // `peer` says its state. Steps beyond kLargestStep are cut.
  const Peer& OnState(const NodeId& peer, ports::StateFrame state);
  // Whether `state` says more than that `peer` goes on as before.
  bool IsNews(const NodeId& peer, const ports::StateFrame& state) const;
  // Something that `peer` sent is of `step`.
  void HearStep(const NodeId& peer, int64_t step);
  // A model or mass of `step` came from `peer`, whole and right.
  void HearWhole(const NodeId& peer, int64_t step);
  // How often that was, from all.
  int64_t heard_whole() const { return heard_whole_; }
  // A new run: what came was of another.
  void ForgetWhole() {
    for (auto& [id, peer] : peers_) peer.whole_step = 0;
  }
  // Our plan or our model is new.
  void CompareAll();

  // Why `peer` may not mix with us, or, without `same_algorithm`, may not give
  // us its model. nullopt: it may.
  std::optional<Refusal> Mismatch(const NodeId& peer,
                                  bool same_algorithm) const;
  std::optional<Refusal> Mismatch(const Peer& peer, bool same_algorithm) const;

  bool TakesPart(const NodeId& peer) const;
  // Whether `peer` takes part has changed since it was last asked for. `round`
  // is the round that this node is in the midst of; nullopt: none.
  Change Refresh(const NodeId& peer, std::optional<int64_t> round);
  // `peer` speaks no more, or speaks again. Return whether the algorithm is to
  // be told.
  bool Silence(const NodeId& peer);
  bool Hear(const NodeId& peer);
  bool IsSilent(const NodeId& peer) const {
    const auto it = peers_.find(peer);
    return it != peers_.end() && it->second.silent;
  }
  // `peer` takes no part, whatever it says, or may again.
  void Hold(const NodeId& peer, bool held) { peers_[peer].held = held; }
  // A new algorithm was told of nobody yet.
  void Untell(const NodeId& peer) { peers_[peer].active = false; }
  // Those that left in the midst of the round: to be refreshed now.
  std::set<NodeId> TakeLeaving();

  // Rounds that peers have reached which should have waited for us in an
  // earlier one. Each is the round `own` of the question when there is none.
  struct Ahead {
    int64_t by_several = 0;  // as many peers are there as are believed
    int64_t by_one = 0;      // something of that round came from one, whole
  };
  // Asked in round `own`, whose next exchange is in round `exchange`.
  Ahead FurthestRounds(const NodeId& self, int64_t own, int64_t exchange) const;

  void CountSent(const NodeId& to, int64_t dense_bytes);
  void CountReceived(const NodeId& from);
  void CountMissed(const NodeId& peer);
  void CountFar(const NodeId& from);
  void CountRejected(const NodeId& from, const Refusal& refusal);
  // A model of `from` is taken: Peer::distance.
  void HearDistance(const NodeId& from, double distance) {
    peers_[from].distance = distance;
  }
  // Root mean square of the peers' distances; nullopt: there is none.
  std::optional<double> ConsensusDistance() const;

  int64_t dense_bytes_sent() const { return dense_bytes_sent_; }
  int64_t models_sent() const { return models_sent_; }
  int64_t models_received() const { return models_received_; }
  int64_t missed() const { return missed_; }
  int64_t far_models() const { return far_models_; }
  // Counts, by the name of the reason.
  const std::map<std::string, int64_t>& rejected() const { return rejected_; }

 private:
  bool TakesPart(const NodeId& id, const Peer& peer) const;
  bool HasSent(const NodeId& id, const Peer& peer, int64_t round) const;
  void Compare(Peer& peer) const;

  const RunInForce& run_;
  const std::function<bool(const NodeId&)> linked_;
  std::map<NodeId, Peer> peers_;
  std::set<NodeId> leaving_;
  int64_t dense_bytes_sent_ = 0;
  int64_t models_sent_ = 0;
  int64_t models_received_ = 0;
  int64_t missed_ = 0;
  int64_t far_models_ = 0;
  int64_t heard_whole_ = 0;
  std::map<std::string, int64_t> rejected_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_PEER_TABLE_H_
