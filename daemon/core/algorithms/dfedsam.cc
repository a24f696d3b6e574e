#include "daemon/core/algorithms/dfedsam.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

Dfedsam::Settings::Settings(const Knobs& knobs)
    : eta(knobs.Number("eta")), rho(knobs.Number("rho")) {}

Dfedsam::Dfedsam(AlgorithmContext context)
    : LocalRounds(std::move(context)), settings_(plan().knobs) {}

void Dfedsam::OnPlanChanged() {
  LocalRounds::OnPlanChanged();
  settings_ = Settings(plan().knobs);
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
  return EndLocalStep();
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
  AddScaled(static_cast<float>(settings_.rho / std::sqrt(square)),
            vectors().gradient, z);
}

// ---- catalogue entry ----

AlgorithmInfo DfedsamInfo() {
  return {
      .name = "dfedsam",
      .summary = "K local sharpness-aware steps, then mixing by W",
      .source = "[DFedSAM] Alg. 1",
      .caveats =
          "A step takes two gradients, so training takes twice as long as with "
          "dfedavgm. A large rho keeps the loss from falling near the optimum.",
      .pace =
          "A round is K steps and one exchange. A step takes two gradients of "
          "one mini-batch.",
      .create = Create<Dfedsam>,
      .exchange = Exchange::kPush,
      .lock_step = true,
      .mixes_models = true,
      .extra_vectors = 1,
      .edge = PushCost(),
      .cost =
          "2 K gradients per round; to each neighbour 4 n bytes as fp32 and "
          "dense, 4 s with s random coordinates.",
      .own_step =
          "its step is the plain one by the gradient at the sharpest point "
          "nearby",
      .knobs = {PositiveKnob("eta", 0.01, "Step size of the local steps."),
                {.name = "rho",
                 .default_value = 0.05,
                 .min = 0,
                 .help = "How far from the model the gradient of a step is "
                         "taken, in the direction in which the loss grows; 0 "
                         "means plain SGD."},
                LocalStepsKnob(),
                MaxLagKnob()}};
}

}  // namespace dfl::core
