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

class Sgp : public MassRounds {
 public:
  explicit Sgp(AlgorithmContext context);

  absl::Span<const float> conserved() const override { return x_; }
  std::optional<double> conserved_weight() const override { return omega_; }
  double omega() const { return omega_; }

 private:
  void BeginRound(Actions& actions) override;
  void AfterGradient(Actions& actions) override;
  void AfterExchange(Arrivals arrivals, Actions& actions) override;
  void ResetMass() override;
  void VisitState(StateFields& fields) override;
  // eta, and less of it where omega is little or nobody else's is in it.
  double StepSize() const override;
  void AddGauges(std::map<std::string, double>& gauges) const override;

  FlatVector x_;  // [n]
  double omega_ = 1;
  double own_share_ = 0;  // of omega: what was not others' before this round
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_SGP_H_
