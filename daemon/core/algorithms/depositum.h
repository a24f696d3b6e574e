// DEPOSITUM: proximal gradient tracking with momentum. [DEPOSITUM] Alg. 1.
// Iteration t at node i, mu = nu = y = g = 0 at the start:
//
//   1. I (Polyak):    nu <- gamma nu + (1-gamma) y
//      II (Nesterov): mu <- gamma mu + (1-gamma) y,
//                     nu <- gamma mu + (1-gamma) y
//   2. x^ = prox_h(x - alpha nu) with step alpha
//      t in {T0, 2 T0, ...}:  x <- sum_j W_ij x^_j;   else x <- x^
//   3. g <- g_i(x)
//   4. y^ = y + beta (g - the g before)
//      t as in 2:  y <- sum_j W_ij y^_j;   else y <- y^
//
// The tracker is kept as z = y - beta g, which only transfers move: i deducts
// W_ji y^_i for each neighbour j through the ledger and adds what arrives, so
// sum_i y_i = beta sum_i g_i holds to rounding whatever the links do.
#ifndef DFL_CORE_ALGORITHMS_DEPOSITUM_H_
#define DFL_CORE_ALGORITHMS_DEPOSITUM_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/mass_rounds.h"
#include "daemon/core/rounds/prox.h"

namespace dfl::core {

AlgorithmInfo DepositumInfo();

class Depositum : public MassRounds {
 public:
  explicit Depositum(AlgorithmContext context);

  absl::Span<const float> conserved() const override { return z_; }
  // The next multiple of T0 above 0.
  int64_t NextExchange(int64_t step) const override;
  // y, and nu of the step that begins there: with x^t and y^t goes nu^{t+1}, as
  // in Prop. 1.
  FlatVector Auxiliary(absl::string_view symbol) const override;

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double alpha;
    float beta;
    float gamma;
    bool nesterov;
    int64_t period;
    Prox prox;
  };

  Pace PaceOf(int64_t k) const override {
    return {k, k == 0 ? 0 : (k - 1) / settings_.period};
  }
  bool IsRound() const override { return mixes_; }
  void BeginRound(Actions& actions) override;
  void AfterGradient(Actions& actions) override;
  void AfterExchange(Arrivals arrivals, Actions& actions) override;
  void ResetMass() override;
  void ResetState() override;
  void VisitState(StateFields& fields) override;
  double StepSize() const override { return settings_.alpha; }
  void OnPlanChanged() override { settings_ = Settings(plan().knobs); }
  FlatVector Tracker() const;  // y = z + beta g
  // sparsity: the share of parameters that are 0.
  void AddGauges(std::map<std::string, double>& gauges) const override;

  Settings settings_;
  bool mixes_ = false;    // in this iteration
  bool trained_ = false;  // its gradient is in
  bool begun_ = false;    // a gradient has ever come
  FlatVector z_;          // [n]
  FlatVector momentum_;   // Polyak: nu; Nesterov: mu. [n]
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_DEPOSITUM_H_
