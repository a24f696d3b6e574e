// DFedSAM, decentralised federated averaging with sharpness-aware steps.
// [DFedSAM] Alg. 1: in a round every node takes K local steps from w_i,
//   z <- z - eta g_i(z + rho g_i(z)/||g_i(z)||),
// both gradients of a step on one mini-batch, and mixes what they gave,
// w_i <- sum_j W_ij z_j. No momentum.
#ifndef DFL_CORE_ALGORITHMS_DFEDSAM_H_
#define DFL_CORE_ALGORITHMS_DFEDSAM_H_

#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/local_rounds.h"

namespace dfl::core {

AlgorithmInfo DfedsamInfo();

class Dfedsam : public LocalRounds {
 public:
  explicit Dfedsam(AlgorithmContext context);

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double eta;
    double rho;
  };

  void BeginLocalSteps() override { ascended_ = false; }
  Next AfterGradient() override;
  double StepSize() const override { return settings_.eta; }
  void OnPlanChanged() override;

  void Ascend();

  Settings settings_;
  bool ascended_ = false;  // the parameters hold z + rho g/||g||
  FlatVector base_;        // z meanwhile, [n]
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_DFEDSAM_H_
