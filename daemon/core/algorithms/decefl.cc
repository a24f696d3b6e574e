#include "daemon/core/algorithms/decefl.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <algorithm>
#include <utility>

#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

AlgorithmInfo DeceflInfo() {
  AlgorithmInfo info;
  info.name = "decefl";
  info.summary = "Mix by W and step at the same model; or whole local epochs";
  info.source = "[DeceFL] eq. (1), supplement eq. (2), (11)";
  info.caveats =
      "With sample weighting the gradient is scaled by rows_i m / sum of rows; "
      "the paper's own form has no factor m, so its eta is m times ours.";
  info.exchange = Exchange::kPush;
  info.lock_step = true;
  info.extra_vectors = 1;
  info.edge = PushCost();
  info.cost =
      "One gradient (form gradient) or E epochs of them (form local) a "
      "round; to each neighbour 4 n bytes as fp32 and dense, 4 s with s "
      "random coordinates.";

  KnobSpec form;
  form.name = "form";
  form.type = KnobType::kText;
  form.default_value = std::string("gradient");
  form.choices = {"gradient", "local"};
  form.help =
      "gradient: one mini-batch gradient a round; local: E epochs of SGD.";
  KnobSpec eta = PositiveKnob("eta", 0.01,
                              "Step size (of the local steps in form local).");
  KnobSpec delta;
  delta.name = "delta";
  delta.default_value = 0.0;
  delta.min = 0;
  delta.help =
      "When above 0, form gradient uses the decaying step delta/(t + Gamma) "
      "instead of eta.";
  KnobSpec gamma = PositiveKnob("Gamma", 1.0, "Offset of the decaying step.");
  KnobSpec epochs;
  epochs.name = "E";
  epochs.type = KnobType::kInteger;
  epochs.default_value = int64_t{1};
  epochs.min = 1;
  epochs.unit = "epochs";
  epochs.noun = KnobNoun::kPeriod;
  epochs.help = "Form local: passes over the node's data in a round.";
  KnobSpec mu = PositiveKnob(
      "mu", 1.0,
      "Form local: weight of the local progress (1: the authors' code; 0.1: "
      "the paper).");
  KnobSpec weighting;
  weighting.name = "sample_weighting";
  weighting.type = KnobType::kFlag;
  weighting.default_value = false;
  weighting.help =
      "Scale the gradient by rows_i m / sum of rows; needs the rows of every "
      "member in the plan.";
  info.knobs = {form, eta, delta, gamma, epochs, mu, weighting, MaxLagKnob()};
  return info;
}

Decefl::Decefl(const AlgorithmContext& context)
    : PushRounds(context),
      batches_per_pass_(std::max<int64_t>(1, context.batches_per_pass)) {}

double Decefl::StepSize() const {
  const Knobs& knobs = plan().knobs;
  const double delta = knobs.Number("delta");
  double eta = knobs.Number("eta");
  if (!LocalForm() && delta > 0) {
    eta = delta / (static_cast<double>(step()) + knobs.Number("Gamma"));
  }
  return knobs.Flag("sample_weighting") ? eta * plan().sample_weight : eta;
}

void Decefl::BeforeTraining() {
  local_form_ = LocalForm();
  if (!local_form_) return;
  start_.assign(vectors().parameters.begin(), vectors().parameters.end());
  local_left_ = plan().knobs.Integer("E") * batches_per_pass_;
}

Decefl::Next Decefl::AfterGradient() {
  if (!local_form_) return Next::kTrained;
  // w' <- w' - eta g(w')
  AddScaled(static_cast<float>(-StepSize()), vectors().gradient,
            vectors().parameters);
  return --local_left_ > 0 ? Next::kNextBatch : Next::kTrained;
}

void Decefl::Mix(std::vector<PushBarrier::Arrival> arrivals) {
  const NodeVectors& v = vectors();
  if (!local_form_) {
    MixArrivals(arrivals, v.parameters, v.buffers);
    if (KeepsMix()) start_.assign(v.parameters.begin(), v.parameters.end());
    AddScaled(static_cast<float>(-StepSize()), v.gradient, v.parameters);
    return;
  }
  // -mu (w - w') is kept in the parameters while start_ mixes in place.
  const auto mu = static_cast<float>(plan().knobs.Number("mu"));
  for (size_t l = 0; l < start_.size(); ++l) {
    v.parameters[l] = mu * (v.parameters[l] - start_[l]);
  }
  MixArrivals(arrivals, absl::MakeSpan(start_), v.buffers);
  AddScaled(1.0F, start_, v.parameters);
}

}  // namespace dfl::core
