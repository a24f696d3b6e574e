// Rounds of K local steps: a node trains from w_i for K steps, pushes what they
// gave, and mixes. DFedAvgM, DFedSAM and FedMid say what a step and a mix are.
#ifndef DFL_CORE_ROUNDS_LOCAL_ROUNDS_H_
#define DFL_CORE_ROUNDS_LOCAL_ROUNDS_H_

#include <cstdint>

#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/algorithm/pace.h"
#include "daemon/core/rounds/push_rounds.h"

namespace dfl::core {

class LocalRounds : public PushRounds {
 public:
  // Local steps leave w_i.
  bool parameters_settled() const final { return !in_round(); }

 protected:
  explicit LocalRounds(AlgorithmContext context);

  // The parameters hold w_i, and the first gradient is asked for next.
  virtual void BeginLocalSteps() = 0;
  // AfterGradient returns this when a local step is done.
  Next EndLocalStep() {
    return --left_ > 0 ? Next::kNextBatch : Next::kTrained;
  }
  void OnPlanChanged() override;
  Pace PaceOf(int64_t k) const override {
    return {TimesAtMost(static_cast<double>(local_steps_), k), k};
  }

 private:
  Order RoundOrder() const final { return Order::kTrainPushMix; }
  void BeforeTraining() final;

  int64_t local_steps_ = 0;  // K
  int64_t left_ = 0;         // steps still to take in this round
};

// The knob K, as all algorithms with local steps declare it.
KnobSpec LocalStepsKnob();

}  // namespace dfl::core

#endif  // DFL_CORE_ROUNDS_LOCAL_ROUNDS_H_
