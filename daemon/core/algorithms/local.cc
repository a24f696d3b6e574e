#include "daemon/core/algorithms/local.h"

#include <utility>
#include <variant>

#include "daemon/core/algorithm/dispatch.h"
#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"
#include "daemon/core/vector/powers.h"

namespace dfl::core {

Local::Settings::Settings(const Knobs& knobs)
    : eta(knobs.Number("eta")),
      sigma0(knobs.Number("sigma0")),
      gamma(knobs.Number("gamma")),
      m(static_cast<double>(knobs.Integer("m"))) {}

Local::Local(const AlgorithmContext& context)
    : settings_(context.plan.knobs),
      vectors_(context.vectors),
      optimizer_(context.plan.optimizer) {}

void Local::Start(int64_t step) {
  k_ = step;
  decay_ = Power(settings_.gamma, step);
}

void Local::VisitState(StateFields& fields) {
  fields.Count("step", k_);
  fields.Positive("gamma_k", decay_);
  optimizer_.VisitState(fields, vectors_.parameters.size());
}

double Local::StepSize() const {
  return optimizer_.StepSize(BaseStep(), gradients());
}

double Local::BaseStep() const {
  if (settings_.sigma0 <= 0) return settings_.eta;
  return 1 / (settings_.sigma0 * decay_ * settings_.m);
}

void Local::TakeStep() {
  if (optimizer_.on()) {
    optimizer_.Step(BaseStep(), gradients(), vectors_.gradient,
                    vectors_.parameters);
  } else {
    AddScaled(static_cast<float>(-BaseStep()), vectors_.gradient,
              vectors_.parameters);
  }
  CountGradient();
  ++k_;
  decay_ *= settings_.gamma;
}

void Local::Handle(Event event, Actions& actions) {
  Dispatch(
      std::move(event),
      [&](const Started& e) {
        Start(e.step);
        BeginPace(e);
      },
      [&](const PlanChanged& e) {
        settings_ = Settings(e.plan.knobs);
        optimizer_.SetSpec(e.plan.optimizer);
      },
      [&](StepBegins) { actions.Do(ComputeGradient{}); },
      [&](const GradientReady& e) {
        NoteGradient(e);
        if (has_gradient()) TakeStep();
        actions.Do(StepDone{});
      },
      Ignored<AskArrived, AnswerArrived, AnswerMissing, PushArrived, TimerFired,
              PeerUp, PeerDown, MassArrived, Delivered, Skipped, EpochBegins,
              Predicted>());
}

std::map<std::string, double> Local::Gauges() const {
  return {{"step_size", StepSize()}};
}

// ---- catalogue entry ----

AlgorithmInfo LocalInfo() {
  return {
      .name = "local",
      .summary = "Stochastic gradient descent on this node alone",
      .source = "baseline",
      .caveats = "Nothing is exchanged: every node ends with its own model.",
      .pace =
          "Every iteration is one step. There are no rounds, so stop.rounds is "
          "refused.",
      .create = Create<Local>,
      .exchange = Exchange::kNone,
      .cost = "One gradient per step; nothing is sent.",
      .knobs = {
          PositiveKnob("eta", 0.01, "Step size, used while sigma0 is 0."),
          {.name = "sigma0",
           .default_value = 0.0,
           .min = 0,
           .help = "When it is above 0, the step size is 1/(sigma0 gamma^k m) "
                   "as in PaME, instead of eta."},
          {.name = "gamma",
           .default_value = 1.001,
           .min = 1,
           .help = "Growth of sigma in each step, used with sigma0."},
          {.name = "m",
           .type = KnobType::kInteger,
           .default_value = int64_t{1},
           .min = 1,
           .help = "Number of neighbours that PaME would divide by, used with "
                   "sigma0."}}};
}

}  // namespace dfl::core
