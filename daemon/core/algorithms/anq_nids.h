// ANQ-NIDS: NIDS (nids.h) with what is mixed sent in b bits, in a range that
// shrinks. [ANQ-NIDS], in our form. D = h = 0 and R = R0 at first; in each
// round
//
//   phi = x - alpha (grad f_i(x) + D)
//   d = 2 R / (2^b - 1)
//   l = clip(rint(clip(phi - h, +-R)/d - 1/2), -2^{b-1}, 2^{b-1} - 1), sent
//   h <- h + (l + 1/2) d;  c = 1/2 (I - W) h
//   x <- phi - c;  D <- D + c/alpha;  R <- rho R
//
// h is the replica of phi. u = -alpha D is conserved, as NIDS's, and moves with
// h. Where phi - h did not fit into +-R the range widens, R <- R/rho: with
// noise or after lost rounds phi would leave a range that only shrinks.
//
// Ours beside that form:
//   K        local steps x <- x - alpha (grad f_i(x) + D) before phi = x
//   c_D      D <- D + c_D/(alpha K) c: less than the whole gain
//   range    `largest`: R is the largest |phi - h| of the message, which names
//            it; nothing is clipped, so that 2 bits are enough
// The codes are entropy coded where that is shorter (codec/coded_steps.h).
// Kept is then Z, the sum of all -c, and u = c_D/K Z.
#ifndef DFL_CORE_ALGORITHMS_ANQ_NIDS_H_
#define DFL_CORE_ALGORITHMS_ANQ_NIDS_H_

#include <map>
#include <string>

#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/mass/matched.h"
#include "daemon/core/rounds/replica_rounds.h"

namespace dfl::core {

AlgorithmInfo AnqNidsInfo();

class AnqNids : public ReplicaRounds {
 public:
  explicit AnqNids(AlgorithmContext context);

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double alpha;
    double initial_range;
    double rho;
    bool adapts;  // the range is that of each message
    int bits;
    int64_t local_steps;
    double gain;  // c_D / K
  };

  Pace PaceOf(int64_t k) const override {
    return {k * settings_.local_steps, k};
  }
  void BeginRound(Actions& actions) override;
  void AfterGradient(Actions& actions) override;
  void AfterExchange(Arrivals arrivals, Actions& actions) override;
  void AddMass(const NodeId& from, double weight,
               absl::Span<const float> replica) override;
  void ResetMass() override;
  void VisitState(StateFields& fields) override;
  double StepSize() const override { return settings_.alpha; }
  void OnPlanChanged() override { settings_ = Settings(plan().knobs); }
  // range: R.
  void AddGauges(std::map<std::string, double>& gauges) const override;

  // Sets the replica to what receivers make of the codes of phi - h.
  void Quantise(absl::Span<const float> phi);
  // vector += Z, as far as it counts.
  void AddCorrection(absl::Span<float> vector);
  // d.
  float StepOf(absl::Span<const float> phi);
  void Give(Actions& actions);

  Settings settings_;
  int64_t steps_left_ = 0;  // of this round
  double range_ = 0;
  MatchedFlows flows_;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_ANQ_NIDS_H_
