// D-PSGD, decentralised parallel SGD. [Lian et al. 2017] Alg. 1:
//   w_i <- sum_j W_ij w_j - eta g_i(w_i),
// mixing and gradient both at the model of the round's start.
#ifndef DFL_CORE_DPSGD_H_
#define DFL_CORE_DPSGD_H_

#include <cstdint>
#include <map>
#include <string>

#include "daemon/core/algorithm.h"
#include "daemon/core/push_barrier.h"

namespace dfl::core {

AlgorithmInfo DpsgdInfo();

class Dpsgd : public Algorithm {
 public:
  explicit Dpsgd(AlgorithmContext context);

  void Handle(Event event, Actions& actions) override;
  int64_t step() const override { return round_; }
  int64_t gradients() const override { return gradients_; }
  // The parameters hold w^k until mixing and step are done in one go.
  bool parameters_settled() const override { return true; }
  void JumpTo(int64_t round) override { round_ = round; }
  std::map<std::string, double> Gauges() const override;

 private:
  void FinishIfComplete(Actions& actions);
  void Finish(Actions& actions);

  NodePlan plan_;
  const NodeVectors vectors_;
  PushBarrier barrier_;
  int64_t round_ = 0;
  int64_t gradients_ = 0;
  bool gradient_ready_ = false;
};

}  // namespace dfl::core

#endif  // DFL_CORE_DPSGD_H_
