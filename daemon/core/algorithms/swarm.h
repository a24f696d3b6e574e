// Swarm learning: fedavg (fedavg.h) through a leader that is drawn anew in
// every round. [Swarm] Methods: every node sends its model of the round's start
// to the leader and gets the mean back; then it adds its own progress, as in
// fedavg. The same models as fedavg with 2 (m-1) messages instead of m (m-1).
//
// All nodes draw the same leader by themselves. Without its mean (it is down or
// late) a node keeps its own model in that round.
#ifndef DFL_CORE_ALGORITHMS_SWARM_H_
#define DFL_CORE_ALGORITHMS_SWARM_H_

#include <cstdint>
#include <vector>

#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithms/decefl.h"

namespace dfl::core {

AlgorithmInfo SwarmInfo();

class Swarm : public Decefl {
 public:
  // `decisions` must outlive it.
  Swarm(const AlgorithmContext& context, Decisions& decisions);

 private:
  void BeginRound() override;
  std::vector<NodeId> Receivers() const override;
  std::vector<NodeId> Senders() const override;
  // The leader waits for the others first, and its mean comes after that.
  absl::Duration Deadline() const override;
  bool KeepsMix() const override { return Leads(); }
  void Mix(std::vector<PushBarrier::Arrival> arrivals) override;
  void AfterMix(Actions& actions) override;

  bool Leads() const { return leader_ == plan().self; }

  Decisions& decisions_;
  NodeId leader_;  // of the present round
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_SWARM_H_
