// Jumping to a later round that neighbours are in (docs/rounds.md).
//
// Loop only.
#ifndef DFL_RUNTIME_JUMPS_H_
#define DFL_RUNTIME_JUMPS_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "daemon/core/algorithm/algorithm.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/evaluations.h"
#include "daemon/runtime/guards/jump_guard.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"

namespace dfl::runtime {

class Jumps {
 public:
  // All must outlive it.
  Jumps(OwnState& own, const PeerTable& peers, const Evaluations& evaluations,
        ports::Loop& loop)
      : own_(own), peers_(peers), evaluations_(evaluations), loop_(loop) {}

  // The node took a round itself.
  void OnRound() { guard_.OnRound(loop_.Now()); }

  // At the boundary: jumps to a later round if neighbours are there.
  void Visit() {
    if (!own_.run.lock_step()) return;
    const int64_t heard = peers_.heard_whole();
    if (heard != std::exchange(heard_, heard)) guard_.OnHeard(loop_.Now());
    core::Algorithm& algorithm = *own_.algorithm.get();
    const int64_t step = algorithm.step();
    const PeerTable::Ahead ahead =
        peers_.FurthestRounds(own_.self, step, algorithm.NextExchange(step));
    const int64_t last =
        evaluations_.EndsBy(std::max(ahead.by_several, ahead.by_one));
    const int64_t furthest =
        guard_.Jump(step, ahead.by_several, ahead.by_one, last, loop_.Now());
    if (furthest > step) algorithm.JumpTo(furthest);
  }

 private:
  OwnState& own_;
  const PeerTable& peers_;
  const Evaluations& evaluations_;
  ports::Loop& loop_;
  JumpGuard guard_;
  int64_t heard_ = 0;  // models and mass of neighbours, at the last boundary
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_JUMPS_H_
