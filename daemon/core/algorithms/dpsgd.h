// D-PSGD, decentralised parallel SGD. [Lian et al. 2017] Alg. 1:
//   w_i <- sum_j W_ij w_j - eta g_i(w_i),
// mixing and gradient both at the model of the round's start.
#ifndef DFL_CORE_ALGORITHMS_DPSGD_H_
#define DFL_CORE_ALGORITHMS_DPSGD_H_

#include <vector>

#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/push_rounds.h"

namespace dfl::core {

AlgorithmInfo DpsgdInfo();

class Dpsgd : public PushRounds {
 public:
  explicit Dpsgd(AlgorithmContext context);

  // The parameters hold w^k until mixing and step are done in one go.
  bool parameters_settled() const override { return true; }

 private:
  void Mix(std::vector<PushBarrier::Arrival> arrivals) override;
  double StepSize() const override { return eta_; }
  void OnPlanChanged() override { eta_ = plan().knobs.Number("eta"); }

  double eta_ = 0;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_DPSGD_H_
