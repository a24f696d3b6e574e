#include "daemon/core/algorithms/dfedavgm.h"

#include <utility>

#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

Dfedavgm::Settings::Settings(const Knobs& knobs)
    : eta(knobs.Number("eta")),
      theta(static_cast<float>(knobs.Number("theta"))) {}

Dfedavgm::Dfedavgm(AlgorithmContext context)
    : LocalRounds(std::move(context)),
      settings_(plan().knobs),
      optimizer_(plan().optimizer) {}

void Dfedavgm::OnPlanChanged() {
  LocalRounds::OnPlanChanged();
  settings_ = Settings(plan().knobs);
  optimizer_.SetSpec(plan().optimizer);
}

void Dfedavgm::VisitState(StateFields& fields) {
  LocalRounds::VisitState(fields);
  optimizer_.VisitState(fields, vectors().parameters.size());
}

void Dfedavgm::BeginLocalSteps() {
  if (optimizer_.on()) {
    optimizer_.BeginRound();
    return;
  }
  momentum_.assign(vectors().parameters.size(), 0.0F);
}

Dfedavgm::Next Dfedavgm::AfterGradient() {
  if (!has_gradient()) return EndLocalStep();
  if (optimizer_.on()) {
    optimizer_.Step(settings_.eta, gradients(), vectors().gradient,
                    vectors().parameters);
    return EndLocalStep();
  }
  const float theta = settings_.theta;
  for (size_t l = 0; l < momentum_.size(); ++l) {
    momentum_[l] = theta * momentum_[l] + vectors().gradient[l];
  }
  AddScaled(static_cast<float>(-StepSize()), momentum_, vectors().parameters);
  return EndLocalStep();
}

// ---- catalogue entry ----

AlgorithmInfo DfedavgmInfo() {
  return {
      .name = "dfedavgm",
      .summary = "K local steps with momentum, then mixing by W",
      .source = "[DFedAvgM] Alg. 1",
      .caveats =
          "Many local steps on different data drive the nodes apart: lower K "
          "or eta when the loss stalls. On the complete graph, theta = 0 is "
          "federated averaging after the local steps.",
      .pace = "A round is K steps and one exchange.",
      .create = Create<Dfedavgm>,
      .exchange = Exchange::kPush,
      .lock_step = true,
      .mixes_models = true,
      .extra_vectors = 1,
      .edge = PushCost(),
      .cost =
          "K gradients per round; to each neighbour 4 n bytes as fp32 and "
          "dense, "
          "4 s with s random coordinates.",
      .optimizer_replaces = "theta",
      .knobs = {PositiveKnob("eta", 0.01, "Step size of the local steps."),
                {.name = "theta",
                 .default_value = 0.9,
                 .min = 0,
                 .max = 1,
                 .max_open = true,
                 .help = "Momentum of the local steps, which starts anew in "
                         "every round; 0 means plain SGD. An optimiser of the "
                         "plan takes its place."},
                LocalStepsKnob(),
                MaxLagKnob()}};
}

}  // namespace dfl::core
