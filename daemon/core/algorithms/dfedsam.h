// DFedSAM, decentralised federated averaging with sharpness-aware steps.
// [DFedSAM] Alg. 1: in a round every node takes K local steps from w_i,
//   z <- z - eta g_i(z + rho g_i(z)/||g_i(z)||),
// both gradients of a step on one mini-batch, and mixes what they gave,
// w_i <- sum_j W_ij z_j. No momentum.
#ifndef DFL_CORE_ALGORITHMS_DFEDSAM_H_
#define DFL_CORE_ALGORITHMS_DFEDSAM_H_

#include <cstdint>

#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/push_rounds.h"

namespace dfl::core {

AlgorithmInfo DfedsamInfo();

class Dfedsam : public PushRounds {
 public:
  explicit Dfedsam(AlgorithmContext context);

  // Local steps leave w_i.
  bool parameters_settled() const override { return !in_round(); }

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double eta;
    double rho;
    int64_t local_steps;
  };

  Order RoundOrder() const override { return Order::kTrainPushMix; }
  void BeforeTraining() override;
  Next AfterGradient() override;
  double StepSize() const override { return settings_.eta; }
  void OnPlanChanged() override { settings_ = Settings(plan().knobs); }

  void Ascend();

  Settings settings_;
  int64_t local_left_ = 0;  // steps still to take in this round
  bool ascended_ = false;   // the parameters hold z + rho g/||g||
  FlatVector base_;         // z meanwhile, [n]
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_DFEDSAM_H_
