#include "daemon/core/nids.h"

#include <utility>
#include <vector>

#include "daemon/core/flat_vector.h"

namespace dfl::core {

KnobSpec NidsStepKnob() {
  KnobSpec alpha = PositiveKnob(
      "alpha", 0.05,
      "Step size, below 2/L; it may be that of gradient descent, whatever the "
      "network. Corrections are kept in units of it, so it cannot change while "
      "the run goes on.");
  alpha.retunable = false;
  alpha.shared = true;
  return alpha;
}

AlgorithmInfo NidsInfo() {
  AlgorithmInfo info;
  info.name = "nids";
  info.summary = "Exact diffusion: D-PSGD with a correction, large steps";
  info.source = "[NIDS] Alg. 1";
  info.caveats =
      "Module buffers (batch normalisation) stay each node's own: only what is "
      "trained is given. A step too long for one node's data is too long for "
      "the run.";
  info.exchange = Exchange::kPush;
  info.lock_step = true;
  info.dense_only = true;
  info.gives_mass = true;
  info.extra_vectors = 2;
  info.cost =
      "One gradient and one vector to every neighbour a round. Up to 4 n "
      "floats an edge wait when links are late.";
  info.knobs = {NidsStepKnob()};
  return info;
}

Nids::Nids(AlgorithmContext context)
    : MassRounds(std::move(context), &NodePlan::neighbours) {}

void Nids::ResetMass() {
  u_.assign(vectors().parameters.size(), 0.0F);
  flows_.Clear();
}

void Nids::BeginRound(Actions& actions) { Compute(actions); }

void Nids::AddCorrection(absl::Span<float> vector) {
  AddScaled(1.0F, u_, vector);
  flows_.AddTo(vector);
}

void Nids::AfterGradient(Actions& actions) {
  CountGradient();
  AddScaled(static_cast<float>(-StepSize()), vectors().gradient,
            vectors().parameters);
  if (step() == 0) {
    EndMassRound(actions);
    return;
  }
  FlatVector phi(vectors().parameters.begin(), vectors().parameters.end());
  AddCorrection(absl::MakeSpan(phi));
  std::vector<Neighbour> receivers;
  Skip skip;
  skip.round = step();
  for (const Neighbour& neighbour : Up(plan().neighbours)) {
    if (flows_.MayGive(neighbour.node)) {
      receivers.push_back({neighbour.node, neighbour.weight / 2});
    } else {
      skip.peers.push_back(neighbour.node);
    }
  }
  if (!skip.peers.empty()) actions.push_back(std::move(skip));
  const std::vector<MassLedger::Share> shares =
      GiveShares(receivers, phi, absl::MakeSpan(u_), 1);
  for (size_t q = 0; q < shares.size(); ++q) {
    flows_.Gave(receivers[q].node, shares[q], receivers[q].weight);
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

}  // namespace dfl::core
