#include "daemon/core/algorithms/dpsgd.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <utility>

#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

AlgorithmInfo DpsgdInfo() {
  AlgorithmInfo info;
  info.name = "d-psgd";
  info.summary = "Decentralised parallel SGD: mix by W and step, every round";
  info.source = "[Lian et al. 2017] Alg. 1";
  info.caveats =
      "With a constant step and different data on the nodes it stalls at a "
      "distance from the optimum.";
  info.exchange = Exchange::kPush;
  info.lock_step = true;
  info.edge = PushCost();
  info.cost =
      "One gradient a round; to each neighbour 4 n bytes as fp32 and "
      "dense, 4 s with s random coordinates.";
  info.knobs = {PositiveKnob("eta", 0.01, "Step size."), MaxLagKnob()};
  return info;
}

Dpsgd::Dpsgd(AlgorithmContext context) : PushRounds(std::move(context)) {}

void Dpsgd::Mix(std::vector<PushBarrier::Arrival> arrivals) {
  MixArrivals(arrivals, vectors().parameters, vectors().buffers);
  AddScaled(static_cast<float>(-StepSize()), vectors().gradient,
            vectors().parameters);
}

}  // namespace dfl::core
