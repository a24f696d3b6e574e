// SGP, stochastic gradient push: push-sum on directed graphs. [SGP] Alg. 1.
// x and omega are mass; the model is their ratio:
//
//   x <- x - eta g_i(z);   x <- B x,  omega <- B omega;   z = x / omega
//
// i deducts b_ji x and b_ji omega for each out-neighbour j through the ledger
// and adds what arrives: sum_i omega_i + what is in flight = m.
#ifndef DFL_CORE_ALGORITHMS_SGP_H_
#define DFL_CORE_ALGORITHMS_SGP_H_

#include <map>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/mass_rounds.h"

namespace dfl::core {

AlgorithmInfo SgpInfo();

// By place, the least omega of each member while nothing fails (mixing.h:
// LeastOmega). Empty where it is not known.
struct SgpFacts : AlgorithmFacts {
  std::vector<double> least_omega;
};

// The share of eta that a step takes, in (0, 1]. [SGP] Alg. 1 takes all of it.
//
// A step of x by eta g moves the model z = x/omega by eta/omega g, and of the
// next z the part `own_share` comes from the node's own x. While nothing fails
// omega is at least `least_omega`, the own part is the diagonal entry `b` of B,
// and so the model moves by at most b eta/least_omega, which the loss has to
// bear.
//
// Where a cut has let omega fall, or little comes from others any more, eta
// moves it further than that. The share keeps own_share * eta/omega within the
// bound; otherwise the model would blow up, be it only in what is cut off.
double SgpStepShare(double omega, double own_share, double b,
                    double least_omega);

class Sgp : public MassRounds {
 public:
  explicit Sgp(AlgorithmContext context);

  absl::Span<const float> conserved() const override { return x_; }
  std::optional<double> conserved_weight() const override { return omega_; }
  double omega() const { return omega_; }

 private:
  struct Settings {
    explicit Settings(const NodePlan& plan);

    double eta;
    double least_omega;
  };

  void BeginRound(Actions& actions) override;
  void AfterGradient(Actions& actions) override;
  void AfterExchange(Arrivals arrivals, Actions& actions) override;
  void ResetMass() override;
  void VisitState(StateFields& fields) override;
  // eta, as far as SgpStepShare allows.
  double StepSize() const override;
  void OnPlanChanged() override { settings_ = Settings(plan()); }
  void AddGauges(std::map<std::string, double>& gauges) const override;

  Settings settings_;
  FlatVector x_;  // [n]
  double omega_ = 1;
  double own_share_ = 0;  // of omega: what was not others' before this round
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_SGP_H_
