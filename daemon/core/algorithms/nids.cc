#include "daemon/core/algorithms/nids.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

Nids::Nids(AlgorithmContext context)
    : MassRounds(std::move(context), &NodePlan::neighbours),
      alpha_(plan().knobs.Number("alpha")) {}

void Nids::ResetMass() {
  u_.assign(vectors().parameters.size(), 0.0F);
  flows_.Clear();
}

void Nids::VisitState(StateFields& fields) {
  MassRounds::VisitState(fields);
  fields.Vector("u", u_, n());
  flows_.VisitState(fields, n());
}

void Nids::BeginRound(Actions& actions) { Compute(actions); }

void Nids::AddCorrection(absl::Span<float> vector) {
  AddScaled(1.0F, u_, vector);
  flows_.AddTo(vector);
}

void Nids::AfterGradient(Actions& actions) {
  CountGradient();
  const absl::Span<float> x = vectors().parameters;
  FlatVector phi(x.size(), 0.0F);
  AddCorrection(absl::MakeSpan(phi));
  const std::vector<Neighbour> receivers = Up(plan().neighbours);
  const double present =
      step() == 0 ? 1 : flows_.Present(plan().neighbours, receivers);
  TakeStep(present, StepSize(), vectors().gradient, phi, x);
  if (step() == 0) {
    EndMassRound(actions);
    return;
  }
  AddScaled(1.0F, x, absl::MakeSpan(phi));
  std::map<double, MassLedger::Share> by_weight;
  for (const Neighbour& neighbour : receivers) {
    const double w = neighbour.weight / 2;
    MassLedger::Share& share = by_weight[w];
    if (!share) {
      auto made = std::make_shared<FlatVector>(phi.size(), 0.0F);
      AddScaled(static_cast<float>(w), phi, absl::MakeSpan(*made));
      share = std::move(made);
    }
    MassLedger::Share given = share;
    const bool may = flows_.MayGive(neighbour.node);
    if (may) {
      flows_.Gave(neighbour.node, share, w);
    } else {
      given = std::make_shared<const FlatVector>(
          flows_.Renew(neighbour.node, *share, w));
    }
    ledger().Give(neighbour.node, step(), given, may ? w : 0);
    AddScaled(-1.0F, *given, absl::MakeSpan(u_));
  }
  Exchange(Parts::kMass, receivers, actions);
}

void Nids::AfterExchange(Arrivals /*arrivals*/, Actions& actions) {
  for (const MassLedger::Taken& taken : ledger().TakeOut(step())) {
    AddScaled(1.0F, taken.mass, absl::MakeSpan(u_));
    flows_.Got(taken.from, taken.mass, taken.scalar);
  }
  AddCorrection(vectors().parameters);
  EndMassRound(actions);
}

// ---- catalogue entry ----

KnobSpec NidsStepKnob() {
  return {.name = "alpha",
          .default_value = 0.05,
          .min = 0,
          .min_open = true,
          .retunable = false,
          .shared = true,
          .help =
              "Step size, below 2/L. It may be as large as that of "
              "gradient descent, whatever the network. Corrections are "
              "kept in units of it."};
}

AlgorithmInfo NidsInfo() {
  return {
      .name = "nids",
      .summary = "Exact diffusion: D-PSGD with a correction, large steps",
      .source = "[NIDS] Alg. 1",
      .caveats =
          "Module buffers (batch normalisation) are not exchanged: every node "
          "keeps its own, because only what is trained is given. A step that "
          "is too long for one node's data is too long for the run. A node "
          "takes less of its step while some neighbours are missing, and none "
          "of it while all are.",
      .create = Create<Nids>,
      .exchange = Exchange::kPush,
      .lock_step = true,
      .dense_only = true,
      .why_dense = "what it gives must arrive whole",
      .gives_mass = true,
      .exact_mass =
          "what it gives does not vanish at the optimum, so what is lost would "
          "not vanish either",
      .extra_vectors = 2,
      .edge = LedgerCost() + MatchedCost(),
      .cost = "One gradient per round; to each neighbour 4 n bytes as fp32.",
      .own_step = "its correction is about plain steps of length alpha",
      .knobs = {NidsStepKnob()}};
}

}  // namespace dfl::core
