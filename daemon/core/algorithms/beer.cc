#include "daemon/core/algorithms/beer.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <utility>

#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/algorithms/choco_sgd.h"
#include "daemon/core/rounds/compressor.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

AlgorithmInfo BeerInfo() {
  AlgorithmInfo info;
  info.name = "beer";
  info.summary = "Gradient tracking with compressed differences";
  info.source = "[BEER] Alg. 1";
  info.caveats =
      "codec.coordinates must be dense: what is sent is up to `compressor`. "
      "Module buffers (batch normalisation) stay each node's own. Where only "
      "1/10 is sent, eta and gamma must be small: start with gamma = 0.2.";
  info.exchange = Exchange::kPush;
  info.lock_step = true;
  info.dense_only = true;
  info.why_dense = "what of a difference is sent is up to its knob compressor";
  info.gives_mass = true;
  info.keeps_replicas = true;
  info.auxiliary = {"v"};
  info.gradient_estimate = "v";
  info.exact_mass = "it sends differences, compressed by its own knobs already";
  info.extra_vectors = 5;
  info.edge = ReplicaCost(2);
  info.cost =
      "One gradient a round (one more in the first); to each neighbour at "
      "most 12 k bytes, 2 k values with their coordinates, k = rate n; "
      "with the compressor sign n/4 + n/32 bytes.";
  info.knobs = {PositiveKnob("eta", 0.01, "Step size."),
                ReplicaMixingKnob(0.2)};
  for (KnobSpec& knob : CompressorKnobs()) info.knobs.push_back(knob);
  return info;
}

Beer::Beer(AlgorithmContext context, Decisions& decisions)
    : ReplicaRounds(std::move(context), 2, true), decisions_(decisions) {}

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
  MixReplicas(0, plan().knobs.Number("gamma"), vectors().parameters);
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
  const double gamma = plan().knobs.Number("gamma");
  GiveOwn([&](const Neighbour& neighbour) {
    return MayGiveMass(neighbour) ? gamma * neighbour.weight : 0.0;
  });
  Exchange(Parts::kMass, Up(plan().neighbours), actions);
}

void Beer::AfterExchange(Arrivals /*arrivals*/, Actions& actions) {
  TakeUpdates();
  EndMassRound(actions);
}

}  // namespace dfl::core
