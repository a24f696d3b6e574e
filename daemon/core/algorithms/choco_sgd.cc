#include "daemon/core/algorithms/choco_sgd.h"

#include <utility>

#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

ChocoSgd::ChocoSgd(AlgorithmContext context, Decisions& decisions)
    : CompressedRounds(std::move(context), decisions, 1, false) {}

void ChocoSgd::BeginRound(Actions& actions) { Compute(actions); }

void ChocoSgd::AfterGradient(Actions& actions) {
  CountGradient();
  const absl::Span<float> x = vectors().parameters;
  AddScaled(static_cast<float>(-StepSize()), vectors().gradient, x);
  Compress(0, "replica", x);
  GiveOwn([](const Neighbour&) { return 0.0; });
  Exchange(Parts::kMass, Up(plan().neighbours), actions);
}

void ChocoSgd::AfterExchange(Arrivals /*arrivals*/, Actions& actions) {
  TakeUpdates();
  MixReplicas(0, gamma(), vectors().parameters);
  EndMassRound(actions);
}

// ---- catalogue entry ----

AlgorithmInfo ChocoSgdInfo() {
  AlgorithmInfo info = CompressedInfo(1);
  info.name = "choco-sgd";
  info.summary = "D-PSGD with compressed differences";
  info.source = "[CHOCO-SGD] Alg. 2";
  info.caveats +=
      " With a constant step it stalls, as d-psgd does, when the nodes' data "
      "differ.";
  info.own_step = "its compressed differences are about one plain step";
  info.create = Create<ChocoSgd>;
  info.extra_vectors = 2;
  info.cost =
      "One gradient per round; to each neighbour at most 6 k bytes, for k = "
      "rate "
      "n values with their coordinates. With the compressor sign it is n/8 + "
      "n/64 bytes.";
  return info;
}

}  // namespace dfl::core
