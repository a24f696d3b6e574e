// DFedAvgM, decentralised federated averaging with momentum. [DFedAvgM] Alg. 1:
// in a round every node takes K local SGD steps with momentum from w_i,
//   v <- theta v + g_i(z),  z <- z - eta v,  v = 0 at the round's start,
// and mixes what they gave, w_i <- sum_j W_ij z_j.
//
// An optimiser that the plan names takes the place of v (local_optimizer.h).
#ifndef DFL_CORE_ALGORITHMS_DFEDAVGM_H_
#define DFL_CORE_ALGORITHMS_DFEDAVGM_H_

#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/local_optimizer.h"
#include "daemon/core/rounds/local_rounds.h"

namespace dfl::core {

AlgorithmInfo DfedavgmInfo();

class Dfedavgm : public LocalRounds {
 public:
  explicit Dfedavgm(AlgorithmContext context);

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double eta;
    float theta;
  };

  void BeginLocalSteps() override;
  Next AfterGradient() override;
  double StepSize() const override {
    return optimizer_.StepSize(settings_.eta, gradients());
  }
  void VisitState(StateFields& fields) override;
  void OnPlanChanged() override;

  Settings settings_;
  FlatVector momentum_;  // v, [n]; unused with an optimiser
  LocalOptimizer optimizer_;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_DFEDAVGM_H_
