// DeceFL, in its two forms. [DeceFL] eq. (1), supplement eq. (2), (11).
//
//   gradient  w_i <- sum_j W_ij w_j - eta_t g_i(w_i),
//             eta_t constant or delta/(t + Gamma)
//   local     E epochs of SGD from w_i give w_i';
//             w_i <- sum_j W_ij w_j - mu (w_i - w_i')
//
// Mixing is at the model of the round's start in both. A node without
// neighbours has W_ii = 1 and keeps training.
#ifndef DFL_CORE_DECEFL_H_
#define DFL_CORE_DECEFL_H_

#include <cstdint>
#include <map>
#include <string>

#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm.h"
#include "daemon/core/push_barrier.h"

namespace dfl::core {

AlgorithmInfo DeceflInfo();

class Decefl : public Algorithm {
 public:
  explicit Decefl(AlgorithmContext context);

  void Handle(Event event, Actions& actions) override;
  int64_t step() const override { return round_; }
  int64_t gradients() const override { return gradients_; }
  bool parameters_settled() const override { return !moving_; }
  void JumpTo(int64_t round) override { round_ = round; }
  std::map<std::string, double> Gauges() const override;

 private:
  bool LocalForm() const;
  double StepSize() const;

  void BeginRound(Actions& actions);
  void OnGradient(Actions& actions);
  // Training of this round is over: mix now, or at the deadline.
  void AwaitNeighbours(Actions& actions);
  void FinishIfComplete(Actions& actions);
  void Finish(Actions& actions);

  NodePlan plan_;
  const NodeVectors vectors_;
  const int64_t batches_per_pass_;
  PushBarrier barrier_;

  int64_t round_ = 0;
  int64_t gradients_ = 0;
  bool trained_ = false;     // waits for neighbours
  bool moving_ = false;      // local steps have left w_i(t)
  bool local_form_ = false;  // of the present round
  int64_t local_left_ = 0;   // gradients still to take in this round
  FlatVector start_;         // local form: w_i(t), [n]
};

}  // namespace dfl::core

#endif  // DFL_CORE_DECEFL_H_
