// K-GT, gradient tracking with local steps. [K-GT] Alg. 1. A round at node i:
//
//   K times:  x <- x - eta_c (g_i(x) + c_i)                 from x_start
//   z_i = (x_start - x_K) / (K eta_c)
//   c_i <- c_i - z_i + sum_j W_ij z_j;   c = 0 at first
//   x_i <- sum_j W_ij (x_j,start - K eta_c z_j) = sum_j W_ij x_j,K
//
// The corrections c sum to 0: i deducts W_ji z_i for each neighbour j through
// the ledger and adds what arrives.
#ifndef DFL_CORE_ALGORITHMS_KGT_H_
#define DFL_CORE_ALGORITHMS_KGT_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/mass_rounds.h"

namespace dfl::core {

AlgorithmInfo KGtInfo();

class KGt : public MassRounds {
 public:
  explicit KGt(AlgorithmContext context);

  absl::Span<const float> conserved() const override { return c_; }
  FlatVector Auxiliary(absl::string_view symbol) const override {
    return symbol == "c" ? c_ : FlatVector();
  }

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double eta_c;
    int64_t local_steps;
  };

  Pace PaceOf(int64_t k) const override {
    return {TimesAtMost(static_cast<double>(settings_.local_steps), k), k};
  }
  void BeginRound(Actions& actions) override;
  void AfterGradient(Actions& actions) override;
  void AfterExchange(Arrivals arrivals, Actions& actions) override;
  void ResetMass() override;
  void VisitState(StateFields& fields) override;
  double StepSize() const override { return settings_.eta_c; }
  void OnPlanChanged() override { settings_ = Settings(plan().knobs); }

  Settings settings_;
  int64_t steps_ = 0;  // K of this round
  int64_t left_ = 0;
  FlatVector start_;  // the model of the round's start, [n]
  FlatVector c_;      // [n]
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_KGT_H_
