// Synchronous rounds by pushes: what d-psgd and decefl have in common.
//
//   StepBegins    push w(t) to every neighbour; train
//   GradientReady training is over, or asks for more (AfterGradient)
//   all in, or the deadline: Mix, and the round is done
//
// A subclass says how it trains and how it mixes; who is waited for and which
// values count is push_barrier.h's.
#ifndef DFL_CORE_PUSH_ROUNDS_H_
#define DFL_CORE_PUSH_ROUNDS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/types/span.h"
#include "daemon/core/algorithm.h"
#include "daemon/core/push_barrier.h"

namespace dfl::core {

class PushRounds : public Algorithm {
 public:
  void Handle(Event event, Actions& actions) final;
  int64_t step() const final { return round_; }
  int64_t gradients() const final { return gradients_; }
  void JumpTo(int64_t round) final { round_ = round; }
  // dropped_late and step_size.
  std::map<std::string, double> Gauges() const final;

 protected:
  explicit PushRounds(AlgorithmContext context);

  // The round's push is out and the parameters hold w(t); a gradient at the
  // parameters is asked for next.
  virtual void BeforeTraining() {}
  // A gradient is in NodeVectors::gradient. True: training of this round goes
  // on with another gradient.
  virtual bool AfterGradient() { return false; }
  // Ends the round: mixes `arrivals` and leaves w(t+1) in the parameters.
  virtual void Mix(absl::Span<const PushBarrier::Arrival> arrivals) = 0;
  virtual double StepSize() const = 0;

  const NodePlan& plan() const { return plan_; }
  const NodeVectors& vectors() const { return vectors_; }
  // Between StepBegins and the round's end.
  bool in_round() const { return in_round_; }

 private:
  void OnGradient(Actions& actions);
  void FinishIfComplete(Actions& actions);
  void Finish(Actions& actions);

  NodePlan plan_;
  const NodeVectors vectors_;
  PushBarrier barrier_;
  int64_t round_ = 0;
  int64_t gradients_ = 0;
  bool in_round_ = false;
  bool trained_ = false;  // waits for neighbours
};

}  // namespace dfl::core

#endif  // DFL_CORE_PUSH_ROUNDS_H_
