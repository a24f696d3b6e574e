#include "daemon/core/algorithms/dfedavgm.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <utility>

#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

AlgorithmInfo DfedavgmInfo() {
  AlgorithmInfo info;
  info.name = "dfedavgm";
  info.summary = "K local steps with momentum, then mixing by W";
  info.source = "[DFedAvgM] Alg. 1";
  info.caveats =
      "Many local steps on different data drive the nodes apart: lower K or "
      "eta when the loss stalls. theta = 0 on the complete graph is federated "
      "averaging after the local steps.";
  info.exchange = Exchange::kPush;
  info.lock_step = true;
  info.extra_vectors = 1;
  info.edge = PushCost();
  info.cost =
      "K gradients a round; to each neighbour 4 n bytes as fp32 and dense, "
      "4 s with s random coordinates.";
  KnobSpec theta;
  theta.name = "theta";
  theta.default_value = 0.9;
  theta.min = 0;
  theta.max = 1;
  theta.max_open = true;
  theta.help =
      "Momentum of the local steps; it starts anew in every round. 0: plain "
      "SGD.";
  info.knobs = {PositiveKnob("eta", 0.01, "Step size of the local steps."),
                theta, LocalStepsKnob(), MaxLagKnob()};
  return info;
}

KnobSpec LocalStepsKnob() {
  KnobSpec steps;
  steps.name = "K";
  steps.type = KnobType::kInteger;
  steps.default_value = int64_t{5};
  steps.min = 1;
  steps.unit = "steps";
  steps.noun = KnobNoun::kPeriod;
  steps.help = "Local steps in a round.";
  return steps;
}

Dfedavgm::Dfedavgm(AlgorithmContext context) : PushRounds(std::move(context)) {}

void Dfedavgm::BeforeTraining() {
  local_left_ = plan().knobs.Integer("K");
  momentum_.assign(vectors().parameters.size(), 0.0F);
}

Dfedavgm::Next Dfedavgm::AfterGradient() {
  const auto theta = static_cast<float>(plan().knobs.Number("theta"));
  for (size_t l = 0; l < momentum_.size(); ++l) {
    momentum_[l] = theta * momentum_[l] + vectors().gradient[l];
  }
  AddScaled(static_cast<float>(-StepSize()), momentum_, vectors().parameters);
  return --local_left_ > 0 ? Next::kNextBatch : Next::kTrained;
}

}  // namespace dfl::core
