// DeceFL, in its two forms. [DeceFL] eq. (1), supplement eq. (2), (11).
//
//   gradient  w_i <- sum_j W_ij w_j - eta_t g_i(w_i),
//             eta_t constant or delta/(t + Gamma)
//   local     E epochs of SGD from w_i give w_i';
//             w_i <- sum_j W_ij w_j - mu (w_i - w_i')
//             The plan may name another optimiser than SGD.
//
// Mixing is at the model of the round's start in both. A node without
// neighbours has W_ii = 1 and keeps training.
#ifndef DFL_CORE_ALGORITHMS_DECEFL_H_
#define DFL_CORE_ALGORITHMS_DECEFL_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/local_optimizer.h"
#include "daemon/core/rounds/push_rounds.h"

namespace dfl::core {

AlgorithmInfo DeceflInfo();

class Decefl : public PushRounds {
 public:
  explicit Decefl(const AlgorithmContext& context);

  // In form local, local steps leave w_i(t).
  bool parameters_settled() const override {
    return !(in_round() && local_form_);
  }

 protected:
  void OnPlanChanged() override {
    settings_ = Settings(plan().knobs);
    optimizer_.SetSpec(plan().optimizer);
  }
  // Form gradient: mix() is wanted too.
  virtual bool KeepsMix() const { return false; }
  // sum_j W_ij w_j(t) of the round just mixed, [n]; in form local, or when
  // KeepsMix().
  absl::Span<const float> mix() const { return start_; }
  void Mix(std::vector<PushBarrier::Arrival> arrivals) override;

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    bool local_form;
    double eta;
    double delta;
    double offset;
    int64_t epochs;
    float mu;
    bool sample_weighting;
  };

  Pace PaceOf(int64_t k) const override;
  void BeforeTraining() override;
  Next AfterGradient() override;
  double StepSize() const override;
  // Without the schedule of an optimiser.
  double BaseStep() const;
  void VisitState(StateFields& fields) override;

  Settings settings_;
  bool local_form_ = false;   // of the present round
  int64_t local_left_ = 0;    // gradients still to take in this round
  LocalOptimizer optimizer_;  // of local steps
  FlatVector start_;          // local form: w_i(t), then the mix, [n]
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_DECEFL_H_
