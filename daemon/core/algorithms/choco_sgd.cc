#include "daemon/core/algorithms/choco_sgd.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <utility>
#include <vector>

#include "daemon/core/rounds/compressor.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

KnobSpec ReplicaMixingKnob(double default_value) {
  KnobSpec gamma =
      PositiveKnob("gamma", default_value,
                   "Consensus step size: how far a round goes towards the "
                   "neighbours' replicas. Too large a one for the compressor "
                   "diverges: take less where less is sent.");
  gamma.max = 1;
  return gamma;
}

AlgorithmInfo ChocoSgdInfo() {
  AlgorithmInfo info;
  info.name = "choco-sgd";
  info.summary = "D-PSGD with compressed differences";
  info.source = "[CHOCO-SGD] Alg. 2";
  info.caveats =
      "codec.coordinates must be dense: what is sent is up to `compressor`. "
      "Module buffers (batch normalisation) stay each node's own. With a "
      "constant step it stalls, as d-psgd does, where nodes' data differ.";
  info.exchange = Exchange::kPush;
  info.lock_step = true;
  info.dense_only = true;
  info.why_dense = "what of a difference is sent is up to its knob compressor";
  info.gives_mass = true;
  info.keeps_replicas = true;
  info.exact_mass = "it sends differences, compressed by its own knobs already";
  info.extra_vectors = 2;
  info.edge = ReplicaCost(1);
  info.cost =
      "One gradient a round; to each neighbour at most 6 k bytes, k = rate "
      "n values with their coordinates; with the compressor sign n/8 + "
      "n/64 bytes.";
  info.knobs = {PositiveKnob("eta", 0.01, "Step size."),
                ReplicaMixingKnob(0.2)};
  for (KnobSpec& knob : CompressorKnobs()) info.knobs.push_back(knob);
  return info;
}

ChocoSgd::ChocoSgd(AlgorithmContext context, Decisions& decisions)
    : ReplicaRounds(std::move(context), 1, false), decisions_(decisions) {}

void ChocoSgd::BeginRound(Actions& actions) { Compute(actions); }

void ChocoSgd::AfterGradient(Actions& actions) {
  CountGradient();
  const absl::Span<float> x = vectors().parameters;
  AddScaled(static_cast<float>(-StepSize()), vectors().gradient, x);
  Compress(0, "replica", x, decisions_);
  GiveOwn([](const Neighbour&) { return 0.0; });
  Exchange(Parts::kMass, Up(plan().neighbours), actions);
}

void ChocoSgd::AfterExchange(Arrivals /*arrivals*/, Actions& actions) {
  TakeUpdates();
  MixReplicas(0, plan().knobs.Number("gamma"), vectors().parameters);
  EndMassRound(actions);
}

}  // namespace dfl::core
