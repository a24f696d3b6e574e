#include "daemon/core/algorithms/dpsgd.h"

#include <utility>

#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

Dpsgd::Dpsgd(AlgorithmContext context)
    : PushRounds(std::move(context)), eta_(plan().knobs.Number("eta")) {}

void Dpsgd::Mix(std::vector<PushBarrier::Arrival> arrivals) {
  MixModels(arrivals, vectors().parameters);
  AddScaled(static_cast<float>(-StepSize()), vectors().gradient,
            vectors().parameters);
}

// ---- catalogue entry ----

AlgorithmInfo DpsgdInfo() {
  return {
      .name = "d-psgd",
      .summary = "Decentralised parallel SGD: mix by W and step, every round",
      .source = "[Lian et al. 2017] Alg. 1",
      .caveats =
          "With a constant step, and different data on the nodes, it stalls at "
          "a distance from the optimum.",
      .create = Create<Dpsgd>,
      .exchange = Exchange::kPush,
      .lock_step = true,
      .mixes_without_data = true,
      .mixes_models = true,
      .edge = PushCost(),
      .cost =
          "One gradient per round; to each neighbour 4 n bytes as fp32 and "
          "dense, 4 s with s random coordinates.",
      .own_step =
          "its step is one with the mixing, of a gradient at the model before "
          "it",
      .knobs = {PositiveKnob("eta", 0.01, "Step size."), MaxLagKnob()}};
}

}  // namespace dfl::core
