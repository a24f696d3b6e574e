// DFedAvgM, decentralised federated averaging with momentum. [DFedAvgM] Alg. 1:
// in a round every node takes K local SGD steps with momentum from w_i,
//   v <- theta v + g_i(z),  z <- z - eta v,  v = 0 at the round's start,
// and mixes what they gave, w_i <- sum_j W_ij z_j.
#ifndef DFL_CORE_ALGORITHMS_DFEDAVGM_H_
#define DFL_CORE_ALGORITHMS_DFEDAVGM_H_

#include <cstdint>

#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/push_rounds.h"

namespace dfl::core {

AlgorithmInfo DfedavgmInfo();

class Dfedavgm : public PushRounds {
 public:
  explicit Dfedavgm(AlgorithmContext context);

  // Local steps leave w_i.
  bool parameters_settled() const override { return !in_round(); }

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double eta;
    float theta;
    int64_t local_steps;
  };

  Order RoundOrder() const override { return Order::kTrainPushMix; }
  void BeforeTraining() override;
  Next AfterGradient() override;
  double StepSize() const override { return settings_.eta; }
  void OnPlanChanged() override { settings_ = Settings(plan().knobs); }

  Settings settings_;
  int64_t local_left_ = 0;  // gradients still to take in this round
  FlatVector momentum_;     // v, [n]
};

// The knob K, as the algorithms with local steps declare it.
KnobSpec LocalStepsKnob();

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_DFEDAVGM_H_
