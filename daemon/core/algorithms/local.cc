#include "daemon/core/algorithms/local.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <utility>
#include <variant>

#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"
#include "daemon/core/vector/powers.h"

namespace dfl::core {

AlgorithmInfo LocalInfo() {
  AlgorithmInfo info;
  info.name = "local";
  info.summary = "Stochastic gradient descent on this node alone";
  info.source = "baseline";
  info.caveats = "Nothing is exchanged: every node ends with its own model.";
  info.exchange = Exchange::kNone;
  info.cost = "One gradient a step; nothing is sent.";

  const KnobSpec eta =
      PositiveKnob("eta", 0.01, "Step size, used while sigma0 is 0.");
  KnobSpec sigma0;
  sigma0.name = "sigma0";
  sigma0.default_value = 0.0;
  sigma0.min = 0;
  sigma0.help =
      "When above 0 the step size is 1/(sigma0 gamma^k m), as in PaME, instead "
      "of eta.";
  KnobSpec gamma;
  gamma.name = "gamma";
  gamma.default_value = 1.001;
  gamma.min = 1;
  gamma.help = "Growth of sigma a step, used with sigma0.";
  KnobSpec m;
  m.name = "m";
  m.type = KnobType::kInteger;
  m.default_value = int64_t{1};
  m.min = 1;
  m.help = "Number of neighbours PaME would divide by, used with sigma0.";
  info.knobs = {eta, sigma0, gamma, m};
  return info;
}

Local::Local(AlgorithmContext context)
    : plan_(std::move(context.plan)), vectors_(context.vectors) {}

void Local::Start(int64_t step) {
  k_ = step;
  decay_ = Power(plan_.knobs.Number("gamma"), step);
}

void Local::VisitState(StateFields& fields) {
  fields.Count("step", k_);
  fields.Positive("gamma_k", decay_);
}

double Local::StepSize() const {
  const double sigma0 = plan_.knobs.Number("sigma0");
  if (sigma0 <= 0) return plan_.knobs.Number("eta");
  return 1 / (sigma0 * decay_ * static_cast<double>(plan_.knobs.Integer("m")));
}

void Local::Handle(Event event, Actions& actions) {
  if (const auto* started = std::get_if<Started>(&event)) {
    Start(started->step);
  } else if (auto* changed = std::get_if<PlanChanged>(&event)) {
    plan_ = std::move(changed->plan);
  } else if (std::holds_alternative<StepBegins>(event)) {
    actions.Do(ComputeGradient{});
  } else if (std::holds_alternative<GradientReady>(event)) {
    AddScaled(static_cast<float>(-StepSize()), vectors_.gradient,
              vectors_.parameters);
    ++k_;
    decay_ *= plan_.knobs.Number("gamma");
    actions.Do(StepDone{});
  }
}

void Local::JumpTo(int64_t round) { Start(round); }

std::map<std::string, double> Local::Gauges() const {
  return {{"step_size", StepSize()}};
}

}  // namespace dfl::core
