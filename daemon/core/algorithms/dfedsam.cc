#include "daemon/core/algorithms/dfedsam.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/core/algorithms/dfedavgm.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

AlgorithmInfo DfedsamInfo() {
  AlgorithmInfo info;
  info.name = "dfedsam";
  info.summary = "K local sharpness-aware steps, then mixing by W";
  info.source = "[DFedSAM] Alg. 1";
  info.caveats =
      "A step takes two gradients, so training takes twice the time of "
      "dfedavgm. A large rho keeps the loss from falling near the optimum.";
  info.exchange = Exchange::kPush;
  info.lock_step = true;
  info.extra_vectors = 1;
  info.edge = PushCost();
  info.cost =
      "2 K gradients a round; to each neighbour 4 n bytes as fp32 and "
      "dense, 4 s with s random coordinates.";
  KnobSpec rho;
  rho.name = "rho";
  rho.default_value = 0.05;
  rho.min = 0;
  rho.help =
      "How far from the model the gradient of a step is taken, in the "
      "direction in which the loss grows. 0: plain SGD.";
  info.knobs = {PositiveKnob("eta", 0.01, "Step size of the local steps."), rho,
                LocalStepsKnob(), MaxLagKnob()};
  return info;
}

Dfedsam::Dfedsam(AlgorithmContext context) : PushRounds(std::move(context)) {}

void Dfedsam::BeforeTraining() {
  local_left_ = plan().knobs.Integer("K");
  ascended_ = false;
}

Dfedsam::Next Dfedsam::AfterGradient() {
  if (!ascended_) {
    Ascend();
    return Next::kSameBatch;
  }
  ascended_ = false;
  std::copy(base_.begin(), base_.end(), vectors().parameters.begin());
  AddScaled(static_cast<float>(-StepSize()), vectors().gradient,
            vectors().parameters);
  return --local_left_ > 0 ? Next::kNextBatch : Next::kTrained;
}

void Dfedsam::Ascend() {
  ascended_ = true;
  const absl::Span<float> z = vectors().parameters;
  base_.assign(z.begin(), z.end());
  double square = 0;
  for (const float g : vectors().gradient) {
    square += static_cast<double>(g) * static_cast<double>(g);
  }
  if (square == 0) return;  // every direction is as good
  const double rho = plan().knobs.Number("rho");
  AddScaled(static_cast<float>(rho / std::sqrt(square)), vectors().gradient, z);
}

}  // namespace dfl::core
