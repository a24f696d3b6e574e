#include "daemon/core/algorithms/decefl.h"

#include <utility>
#include <vector>

#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

Decefl::Settings::Settings(const Knobs& knobs)
    : local_form(knobs.Text("form") == "local"),
      eta(knobs.Number("eta")),
      delta(knobs.Number("delta")),
      offset(knobs.Number("Gamma")),
      epochs(knobs.Integer("E")),
      mu(static_cast<float>(knobs.Number("mu"))),
      sample_weighting(knobs.Flag("sample_weighting")) {}

Decefl::Decefl(const AlgorithmContext& context)
    : PushRounds(context),
      settings_(plan().knobs),
      optimizer_(plan().optimizer) {}

double Decefl::StepSize() const {
  if (!settings_.local_form || !optimizer_.on()) return BaseStep();
  return optimizer_.StepSize(BaseStep(), gradients());
}

void Decefl::VisitState(StateFields& fields) {
  PushRounds::VisitState(fields);
  optimizer_.VisitState(fields, vectors().parameters.size());
}

double Decefl::BaseStep() const {
  double eta = settings_.eta;
  if (!settings_.local_form && settings_.delta > 0) {
    eta = settings_.delta /
          (static_cast<double>(step() - idle()) + settings_.offset);
  }
  return settings_.sample_weighting ? eta * plan().sample_weight : eta;
}

Pace Decefl::PaceOf(int64_t k) const {
  const int64_t steps =
      settings_.local_form ? settings_.epochs * batches_per_pass() : 1;
  return {TimesAtMost(static_cast<double>(steps), k), k};
}

void Decefl::BeforeTraining() {
  local_form_ = settings_.local_form;
  if (!local_form_) return;
  start_.assign(vectors().parameters.begin(), vectors().parameters.end());
  local_left_ = settings_.epochs * batches_per_pass();
  optimizer_.BeginRound();
}

Decefl::Next Decefl::AfterGradient() {
  if (!local_form_) return Next::kTrained;
  if (optimizer_.on() && has_gradient()) {
    optimizer_.Step(BaseStep(), gradients(), vectors().gradient,
                    vectors().parameters);
  } else if (!optimizer_.on()) {
    // w' <- w' - eta g(w')
    AddScaled(static_cast<float>(-StepSize()), vectors().gradient,
              vectors().parameters);
  }
  return --local_left_ > 0 ? Next::kNextBatch : Next::kTrained;
}

void Decefl::Mix(std::vector<PushBarrier::Arrival> arrivals) {
  const NodeVectors& v = vectors();
  if (!local_form_) {
    MixModels(arrivals, v.parameters);
    if (KeepsMix()) start_.assign(v.parameters.begin(), v.parameters.end());
    AddScaled(static_cast<float>(-StepSize()), v.gradient, v.parameters);
    return;
  }
  // -mu (w - w') is kept in the parameters while start_ mixes in place.
  const float mu = settings_.mu;
  for (size_t l = 0; l < start_.size(); ++l) {
    v.parameters[l] = mu * (v.parameters[l] - start_[l]);
  }
  MixModels(arrivals, absl::MakeSpan(start_));
  AddScaled(1.0F, start_, v.parameters);
}

// ---- catalogue entry ----

namespace {

std::vector<KnobSpec> DeceflKnobs() {
  return {{.name = "form",
           .type = KnobType::kText,
           .default_value = std::string("gradient"),
           .choices = {"gradient", "local"},
           .help = "gradient: a round takes one mini-batch gradient. local: a "
                   "round takes E epochs of SGD."},
          PositiveKnob("eta", 0.01,
                       "Step size. In form local it is that of the local "
                       "steps."),
          {.name = "delta",
           .default_value = 0.0,
           .min = 0,
           .help = "When it is above 0, form gradient uses the decaying step "
                   "delta/(t + Gamma) instead of eta."},
          PositiveKnob("Gamma", 1.0, "Offset of the decaying step."),
          {.name = "E",
           .type = KnobType::kInteger,
           .default_value = int64_t{1},
           .min = 1,
           .unit = "epochs",
           .noun = KnobNoun::kPeriod,
           .help = "Form local: how many times a round goes through the node's "
                   "data."},
          PositiveKnob("mu", 1.0,
                       "Form local: weight of the local progress. The authors' "
                       "code has 1, the paper 0.1."),
          {.name = "sample_weighting",
           .type = KnobType::kFlag,
           .default_value = false,
           .help = "Whether the gradient is multiplied by rows_i m / sum of "
                   "rows. The plan must then give the rows of every member."},
          MaxLagKnob()};
}

}  // namespace

AlgorithmInfo DeceflInfo() {
  return {
      .name = "decefl",
      .summary = "Mix by W and step at the same model; or whole local epochs",
      .source = "[DeceFL] eq. (1), supplement eq. (2), (11)",
      .caveats =
          "With sample_weighting the gradient is multiplied by rows_i m / sum "
          "of rows. The paper's own form has no factor m, so its eta is m "
          "times ours.",
      .pace =
          "A round is one exchange and, in form gradient, one step; in form "
          "local it is E epochs of steps, of the node's own rows.",
      .create = Create<Decefl>,
      .exchange = Exchange::kPush,
      .lock_step = true,
      .steps_of =
          [](const Knobs& knobs) {
            return knobs.Text("form") == "local" ? StepsOf::kRows
                                                 : StepsOf::kAll;
          },
      .mixes_without_data = true,
      .mixes_models = true,
      .extra_vectors = 1,
      .edge = PushCost(),
      .cost =
          "A round takes one gradient (form gradient) or E epochs of gradients "
          "(form local); to each neighbour 4 n bytes as fp32 and dense, 4 s "
          "with s random coordinates.",
      .optimizer_needs_local_form = true,
      .knobs = DeceflKnobs()};
}

}  // namespace dfl::core
