// CHOCO-SGD: D-PSGD with compressed differences. [CHOCO-SGD] Alg. 2. A round at
// node i, replicas x^ = 0 at first:
//
//   x' = x - eta g_i(x);  q_i = C(x' - x^_i), sent
//   x^_j <- x^_j + q_j for every neighbour j and itself
//   x <- x' + gamma sum_j W_ij (x^_j - x^_i)
#ifndef DFL_CORE_ALGORITHMS_CHOCO_SGD_H_
#define DFL_CORE_ALGORITHMS_CHOCO_SGD_H_

#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/replica_rounds.h"

namespace dfl::core {

AlgorithmInfo ChocoSgdInfo();

class ChocoSgd : public ReplicaRounds {
 public:
  ChocoSgd(AlgorithmContext context, Decisions& decisions);

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double eta;
    double gamma;
  };

  void BeginRound(Actions& actions) override;
  void AfterGradient(Actions& actions) override;
  void AfterExchange(Arrivals arrivals, Actions& actions) override;
  double StepSize() const override { return settings_.eta; }
  void OnPlanChanged() override { settings_ = Settings(plan().knobs); }

  Settings settings_;
  Decisions& decisions_;
};

// The knob gamma of algorithms that mix replicas.
KnobSpec ReplicaMixingKnob(double default_value);

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_CHOCO_SGD_H_
