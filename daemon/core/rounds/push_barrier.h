// The barrier of synchronous rounds: what neighbours pushed, and when a round
// has waited long enough. Shared by the algorithms that mix by a row of W.
//
// Rules (docs/rounds.md, "rounds out of step"):
//   - a round waits, at most to the deadline, for every neighbour that was up
//     when it began and still is (one that came up later does not know that it
//     should have sent something); also for one that was only silent then, as
//     soon as it speaks;
//   - a neighbour's value of the present round is used; if it is missing at the
//     deadline, one up to max_lag rounds old that was not used before;
//   - older values are counted and dropped; values of later rounds wait;
//   - a neighbour without a value counts as no difference.
#ifndef DFL_CORE_ROUNDS_PUSH_BARRIER_H_
#define DFL_CORE_ROUNDS_PUSH_BARRIER_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

class PushBarrier {
 public:
  // Links are taken to be down until PeerUp says otherwise.
  explicit PushBarrier(std::vector<Neighbour> neighbours);

  void SetNeighbours(std::vector<Neighbour> neighbours);
  void SetUp(const NodeId& peer, bool up);
  // `peer` is down, but its link is up and it may know of the rounds that begin
  // meanwhile.
  void SetSilent(const NodeId& peer);
  // `peer` is up again and knew of this round all the time: it is waited for
  // if it was up or silent when the round began.
  void AwaitAgain(const NodeId& peer);

  // Begins a round, which waits for those of `senders` that are up now.
  void BeginRound(absl::Span<const NodeId> senders);

  // Keeps a pushed model. `round` is the node's present round.
  void Add(const NodeId& from, RemoteModel model, int64_t round,
           int64_t max_lag);

  // Whether every neighbour that is waited for has sent its value of `round`,
  // or is ahead of it.
  bool Complete(int64_t round) const;

  // The neighbours that keep `round` from being complete.
  Missed Missing(int64_t round) const;

  // One neighbour's model and its weight.
  struct Arrival {
    NodeId from;
    double weight = 0;
    RemoteModel model;
  };

  // Removes and returns what `round` mixes, in the order of neighbours. Drops
  // what is too old for the next round.
  std::vector<Arrival> Take(int64_t round, int64_t max_lag);

  // Whether `peer` is waited for and has sent nothing of `round` or later.
  bool Awaits(const NodeId& peer, int64_t round) const;
  // The neighbours for which this round waits and that are up.
  const std::set<NodeId>& awaited() const { return awaited_; }

  bool IsUp(const NodeId& peer) const { return up_.count(peer) > 0; }
  // All peers that are up, neighbours or not.
  const std::set<NodeId>& up() const { return up_; }

  std::vector<NodeId> peers() const;
  // The neighbours that are up, in their order.
  std::vector<NodeId> up_peers() const;
  // The number of values that came too late to be used.
  int64_t dropped() const { return dropped_; }
  void VisitState(StateFields& fields);

 private:
  bool IsNeighbour(const NodeId& peer) const;

  std::vector<Neighbour> neighbours_;
  std::set<NodeId> up_;
  std::set<NodeId> awaited_;  // of up_
  std::set<NodeId> silent_;
  // Were awaited in this round and went down, or were silent when it began.
  std::set<NodeId> lapsed_;
  // By neighbour, then by the sender's round; at most two rounds are kept.
  std::map<NodeId, std::map<int64_t, RemoteModel>> arrived_;
  int64_t dropped_ = 0;
};

// parameters += sum_j W_ij (w_j - parameters), and the module buffers likewise.
void MixArrivals(absl::Span<const PushBarrier::Arrival> arrivals,
                 absl::Span<float> parameters, absl::Span<float> buffers);
// The module buffers alone.
void MixBuffers(absl::Span<const PushBarrier::Arrival> arrivals,
                absl::Span<float> buffers);

// The memory of algorithms with a barrier: a model in flight to a neighbour,
// the next one behind it, and the received models of two rounds.
EdgeCost PushCost();

// The knob max_lag, as every synchronous algorithm declares it to which a value
// of the round before is of use.
KnobSpec MaxLagKnob();

// What that knob says; 0 where an algorithm has not declared it.
int64_t MaxLagOf(const Knobs& knobs);

}  // namespace dfl::core

#endif  // DFL_CORE_ROUNDS_PUSH_BARRIER_H_
