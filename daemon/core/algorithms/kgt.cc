#include "daemon/core/algorithms/kgt.h"

#include <utility>
#include <vector>

#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/rounds/local_rounds.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

KGt::Settings::Settings(const Knobs& knobs)
    : eta_c(knobs.Number("eta_c")), local_steps(knobs.Integer("K")) {}

KGt::KGt(AlgorithmContext context)
    : MassRounds(std::move(context), &NodePlan::neighbours),
      settings_(plan().knobs) {}

void KGt::ResetMass() { c_.assign(vectors().parameters.size(), 0.0F); }

void KGt::VisitState(StateFields& fields) {
  MassRounds::VisitState(fields);
  fields.Vector("c", c_, n());
}

void KGt::BeginRound(Actions& actions) {
  start_.assign(vectors().parameters.begin(), vectors().parameters.end());
  steps_ = left_ = settings_.local_steps;
  Compute(actions);
}

void KGt::AfterGradient(Actions& actions) {
  const auto eta = static_cast<float>(StepSize());
  const absl::Span<float> x = vectors().parameters;
  for (size_t l = 0; l < x.size(); ++l) {
    x[l] -= eta * (vectors().gradient[l] + c_[l]);
  }
  CountGradient();
  if (--left_ > 0) {
    Compute(actions);
    return;
  }
  // start_ becomes z_i.
  const float inverse = 1 / (static_cast<float>(steps_) * eta);
  for (size_t l = 0; l < x.size(); ++l) {
    start_[l] = (start_[l] - x[l]) * inverse;
  }
  const std::vector<Neighbour> receivers = Up(plan().neighbours);
  GiveShares(receivers, start_, absl::MakeSpan(c_));
  Exchange(Parts::kModelsAndMass, receivers, actions);
}

void KGt::AfterExchange(Arrivals arrivals, Actions& actions) {
  MixArrivals(arrivals, vectors().parameters, vectors().buffers);
  ledger().AddTo(step(), absl::MakeSpan(c_));
  EndMassRound(actions);
}

// ---- catalogue entry ----

AlgorithmInfo KGtInfo() {
  return {
      .name = "k-gt",
      .summary = "K local steps, corrected by gradient tracking",
      .source = "[K-GT] Alg. 1",
      .caveats =
          "The correction makes local steps longer, so with many of them eta_c "
          "must be smaller than d-psgd's eta.",
      .pace = "A round is K steps and one exchange.",
      .create = Create<KGt>,
      .exchange = Exchange::kPush,
      .lock_step = true,
      .dense_only = true,
      .why_dense =
          "it mixes whole models by the same weights that move the trackers",
      .gives_mass = true,
      .auxiliary = {"c"},
      .extra_vectors = 2,
      .edge = LedgerCost() + PushCost(),
      .cost =
          "K gradients per round; to each neighbour 8 n bytes as fp32, for a "
          "model and a correction.",
      .own_step =
          "its correction is what the local steps moved, divided by K eta_c",
      .knobs = {PositiveKnob("eta_c", 0.01, "Step size of the local steps."),
                LocalStepsKnob(), MaxLagKnob()}};
}

}  // namespace dfl::core
