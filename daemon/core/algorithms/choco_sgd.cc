#include "daemon/core/algorithms/choco_sgd.h"

#include <utility>
#include <vector>

#include "daemon/core/rounds/compressor.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

ChocoSgd::Settings::Settings(const Knobs& knobs)
    : eta(knobs.Number("eta")), gamma(knobs.Number("gamma")) {}

ChocoSgd::ChocoSgd(AlgorithmContext context, Decisions& decisions)
    : ReplicaRounds(std::move(context), 1, false),
      settings_(plan().knobs),
      decisions_(decisions) {}

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
  MixReplicas(0, settings_.gamma, vectors().parameters);
  EndMassRound(actions);
}

// ---- catalogue entry ----

KnobSpec ReplicaMixingKnob(double default_value) {
  return {.name = "gamma",
          .default_value = default_value,
          .min = 0,
          .max = 1,
          .min_open = true,
          .help =
              "Consensus step size: how far a round moves towards the "
              "neighbours' replicas. Too large a value for the compressor "
              "diverges; the less is sent, the smaller it must be."};
}

AlgorithmInfo ChocoSgdInfo() {
  return {
      .name = "choco-sgd",
      .summary = "D-PSGD with compressed differences",
      .source = "[CHOCO-SGD] Alg. 2",
      .caveats =
          "codec.coordinates must be dense, because the knob `compressor` "
          "decides what is sent. Module buffers (batch normalisation) are not "
          "exchanged: every node keeps its own. With a constant step it "
          "stalls, as d-psgd does, when the nodes' data differ.",
      .create = Create<ChocoSgd>,
      .exchange = Exchange::kPush,
      .lock_step = true,
      .dense_only = true,
      .why_dense = "its knob compressor decides what of a difference is sent",
      .gives_mass = true,
      .exact_mass =
          "it sends differences, which its own knobs compress already",
      .keeps_replicas = true,
      .extra_vectors = 2,
      .edge = ReplicaCost(1),
      .cost =
          "One gradient a round; to each neighbour at most 6 k bytes, for k = "
          "rate n values with their coordinates. With the compressor sign it "
          "is n/8 + n/64 bytes.",
      .knobs = Joined(
          {PositiveKnob("eta", 0.01, "Step size."), ReplicaMixingKnob(0.2)},
          CompressorKnobs())};
}

}  // namespace dfl::core
