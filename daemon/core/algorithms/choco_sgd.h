// CHOCO-SGD: D-PSGD with compressed differences. [CHOCO-SGD] Alg. 2. A round at
// node i, replicas x^ = 0 at first:
//
//   x' = x - eta g_i(x);  q_i = C(x' - x^_i), sent
//   x^_j <- x^_j + q_j for every neighbour j and itself
//   x <- x' + gamma sum_j W_ij (x^_j - x^_i)
#ifndef DFL_CORE_ALGORITHMS_CHOCO_SGD_H_
#define DFL_CORE_ALGORITHMS_CHOCO_SGD_H_

#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/compressed_rounds.h"

namespace dfl::core {

AlgorithmInfo ChocoSgdInfo();

class ChocoSgd : public CompressedRounds {
 public:
  // `decisions` must outlive it.
  ChocoSgd(AlgorithmContext context, Decisions& decisions);

 private:
  void BeginRound(Actions& actions) override;
  void AfterGradient(Actions& actions) override;
  void AfterExchange(Arrivals arrivals, Actions& actions) override;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_CHOCO_SGD_H_
