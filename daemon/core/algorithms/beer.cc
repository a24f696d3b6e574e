#include "daemon/core/algorithms/beer.h"

#include <utility>

#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/algorithms/choco_sgd.h"
#include "daemon/core/rounds/compressor.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

Beer::Settings::Settings(const Knobs& knobs)
    : eta(knobs.Number("eta")), gamma(knobs.Number("gamma")) {}

Beer::Beer(AlgorithmContext context, Decisions& decisions)
    : ReplicaRounds(std::move(context), 2, true),
      settings_(plan().knobs),
      decisions_(decisions) {}

void Beer::ResetState() {
  begun_ = moved_ = false;
  v_.assign(n(), 0.0F);
}

void Beer::VisitState(StateFields& fields) {
  ReplicaRounds::VisitState(fields);
  fields.Flag("begun", begun_);
  fields.Vector("v", v_, n());
}

void Beer::BeginRound(Actions& actions) {
  moved_ = false;
  if (begun_) {
    Move(actions);
  } else {
    begun_ = true;
    Compute(actions);
  }
}

void Beer::Move(Actions& actions) {
  moved_ = true;
  MixReplicas(0, settings_.gamma, vectors().parameters);
  AddScaled(static_cast<float>(-StepSize()), v_, vectors().parameters);
  Compute(actions);
}

void Beer::AfterGradient(Actions& actions) {
  CountGradient();
  v_ = z();
  AddScaled(1.0F, vectors().gradient, absl::MakeSpan(v_));
  if (!moved_) {
    Move(actions);
    return;
  }
  Compress(0, "h", vectors().parameters, decisions_);
  Compress(1, "g", v_, decisions_);
  const double gamma = settings_.gamma;
  GiveOwn([&](const Neighbour& neighbour) {
    return MayGiveMass(neighbour) ? gamma * neighbour.weight : 0.0;
  });
  Exchange(Parts::kMass, Up(plan().neighbours), actions);
}

void Beer::AfterExchange(Arrivals /*arrivals*/, Actions& actions) {
  TakeUpdates();
  EndMassRound(actions);
}

// ---- catalogue entry ----

AlgorithmInfo BeerInfo() {
  return {
      .name = "beer",
      .summary = "Gradient tracking with compressed differences",
      .source = "[BEER] Alg. 1",
      .caveats =
          "codec.coordinates must be dense, because the knob `compressor` "
          "decides what is sent. Module buffers (batch normalisation) are not "
          "exchanged: every node keeps its own. When only 1/10 of the "
          "coordinates is sent, eta and gamma must be small: start with gamma "
          "= 0.2.",
      .create = Create<Beer>,
      .exchange = Exchange::kPush,
      .lock_step = true,
      .dense_only = true,
      .why_dense = "its knob compressor decides what of a difference is sent",
      .gives_mass = true,
      .exact_mass =
          "it sends differences, which its own knobs compress already",
      .keeps_replicas = true,
      .auxiliary = {"v"},
      .gradient_estimate = "v",
      .extra_vectors = 5,
      .edge = ReplicaCost(2),
      .cost =
          "One gradient a round, and two in the first; to each neighbour at "
          "most 12 k bytes, for 2 k values with their coordinates, k = rate n. "
          "With the compressor sign it is n/4 + n/32 bytes.",
      .knobs = Joined(
          {PositiveKnob("eta", 0.01, "Step size."), ReplicaMixingKnob(0.2)},
          CompressorKnobs())};
}

}  // namespace dfl::core
