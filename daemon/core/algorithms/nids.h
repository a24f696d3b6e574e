// NIDS: exact with a step that does not depend on the network. [NIDS] Alg. 1 in
// the form of two vectors: D = 0 and x^1 = x^0 - alpha grad f_i(x^0) at first,
// then in each round
//
//   phi = x - alpha (grad f_i(x) + D);  c = 1/2 (I - W) phi
//   x <- phi - c;  D <- D + c/alpha
//
// which is x^{k+2} = 1/2 (I + W) (2 x^{k+1} - x^k - alpha (grad f(x^{k+1}) -
// grad f(x^k))). Kept is u = -alpha D, which only transfers move: i deducts
// W_ij/2 phi_i for each neighbour j through the ledger and adds what arrives,
// so the sum of u over the nodes stays 0. What has no counterpart does not
// count: matched.h.
#ifndef DFL_CORE_ALGORITHMS_NIDS_H_
#define DFL_CORE_ALGORITHMS_NIDS_H_

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/mass/matched.h"
#include "daemon/core/rounds/mass_rounds.h"

namespace dfl::core {

AlgorithmInfo NidsInfo();

class Nids : public MassRounds {
 public:
  explicit Nids(AlgorithmContext context);

  absl::Span<const float> conserved() const override { return u_; }

 private:
  void BeginRound(Actions& actions) override;
  void AfterGradient(Actions& actions) override;
  void AfterExchange(Arrivals arrivals, Actions& actions) override;
  void ResetMass() override;
  double StepSize() const override { return alpha_; }
  void OnPlanChanged() override { alpha_ = plan().knobs.Number("alpha"); }
  void VisitState(StateFields& fields) override;

  // vector += -alpha D, as far as it counts.
  void AddCorrection(absl::Span<float> vector);

  double alpha_;
  FlatVector u_;  // [n]
  MatchedFlows flows_;
};

// The knob alpha of NIDS and ANQ-NIDS.
KnobSpec NidsStepKnob();

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_NIDS_H_
