// Epidemic learning: in every round a node sends its model to s random members
// and averages what came with its own, all with equal weight; then it steps at
// the average. [Epidemic] EL-Local, with the local step after the average
// (step_first: before it, the paper's order).
//
// Everyone draws everyone's receivers (Decisions::ChooseTogether), so a node
// knows whose models it waits for.
#ifndef DFL_CORE_ALGORITHMS_EPIDEMIC_H_
#define DFL_CORE_ALGORITHMS_EPIDEMIC_H_

#include <vector>

#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/push_rounds.h"

namespace dfl::core {

AlgorithmInfo EpidemicInfo();

class Epidemic : public PushRounds {
 public:
  // `decisions` must outlive it.
  Epidemic(AlgorithmContext context, Decisions& decisions);

  bool parameters_settled() const override { return !in_round() || !moved_; }

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double eta;
    int64_t s;
    bool step_first;
  };

  void BeginRound() override;
  Order RoundOrder() const override;
  std::vector<NodeId> Receivers() const override { return receivers_; }
  std::vector<NodeId> Senders() const override { return senders_; }
  Next AfterGradient() override;
  void Mix(std::vector<PushBarrier::Arrival> arrivals) override;
  double StepSize() const override { return settings_.eta; }
  void OnPlanChanged() override { settings_ = Settings(plan().knobs); }

  Settings settings_;
  Decisions& decisions_;
  // Of the present round.
  std::vector<NodeId> receivers_;
  std::vector<NodeId> senders_;
  bool moved_ = false;  // the parameters are not w(t) any more
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_EPIDEMIC_H_
