// Mass on its way to neighbours, and the tracker epoch it is of.
//
// core::MassLedger sees to it that a parcel counts once; here it is sent again,
// unchanged, until its taker has acknowledged it: through lost links, refusals
// and pauses.
//
// A tracker epoch ends when mass may have been lost with a node's memory: when
// a neighbour with which mass was exchanged in it comes back with another
// incarnation or is no longer a member, or when this node's own algorithm
// begins anew. Who notices enters the next epoch; who hears of a higher one
// enters that, at any moment. In a new epoch nothing was given or taken yet.
#ifndef DFL_RUNTIME_PARCELS_H_
#define DFL_RUNTIME_PARCELS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/transfers/transfers.h"

namespace dfl::runtime {

class Parcels {
 public:
  static constexpr absl::Duration kBetween = absl::Seconds(1);

  // `may_send`: whether the peer is linked and takes part in our run.
  // `delivered`: a parcel of the present epoch was taken.
  // `seed`: of the jitter between two tries.
  Parcels(ports::Loop& loop, Transfers& transfers, uint64_t seed,
          std::function<bool(const NodeId&)> may_send,
          std::function<void(core::Delivered)> delivered);
  ~Parcels();

  // 0: no mass was given or taken yet.
  uint64_t epoch() const { return epoch_; }
  // Forgets what is out: it is void. epoch >= the present one, but for a node
  // that goes back to a checkpoint.
  void Enter(uint64_t epoch);

  // Sends until it is taken.
  void Send(const core::Give& give);
  // `peer` may be sent to. What waited for that goes at once. What it has
  // refused goes in its own time, or, where there is `news` of it, kBetween
  // after the last try: nobody is sent to faster than that for what it says.
  void Resume(const NodeId& peer, bool news);
  // Mass of `peer` was taken in.
  void NoteTaken(const NodeId& peer) { partners_.insert(peer); }

  // With whom mass was exchanged in this epoch.
  const std::set<NodeId>& partners() const { return partners_; }
  // Parcels that are not taken yet.
  int64_t out() const { return static_cast<int64_t>(out_.size()); }
  // How often one was sent after its first time.
  int64_t resent() const { return resent_; }

 private:
  struct Out {
    core::Give give;
    bool sending = false;  // a transfer is under way
    int64_t tries = 0;
    int64_t refused = 0;  // tries that failed, in a row
    bool waits = false;   // until the peer may be sent to
    absl::Time tried;
    absl::Time next;  // try, while `retry` runs
    ports::TimerId retry = 0;
  };

  void Transfer(const NodeId& to);
  // From 200 ms, doubled after each refusal, to 5 s; half of it is jitter.
  absl::Duration Pause(int64_t refused);
  void RetryAt(const NodeId& to, Out& out, absl::Time when);
  void Retry(const NodeId& to);

  ports::Loop& loop_;
  Transfers& transfers_;
  const std::function<bool(const NodeId&)> may_send_;
  const std::function<void(core::Delivered)> delivered_;
  Rng rng_;
  uint64_t epoch_ = 0;
  std::map<NodeId, Out> out_;
  std::set<NodeId> partners_;
  int64_t resent_ = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_PARCELS_H_
