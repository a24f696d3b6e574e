#include "daemon/core/dpsgd.h"

#include <utility>
#include <variant>

#include "daemon/core/flat_vector.h"

namespace dfl::core {
namespace {

constexpr uint64_t kDeadlineTimer = 1;

}  // namespace

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
  info.cost = "One gradient and one push to every neighbour a round.";
  KnobSpec eta;
  eta.name = "eta";
  eta.default_value = 0.01;
  eta.min = 0;
  eta.min_open = true;
  eta.help = "Step size.";
  info.knobs = {eta, MaxLagKnob()};
  return info;
}

Dpsgd::Dpsgd(AlgorithmContext context)
    : plan_(std::move(context.plan)),
      vectors_(context.vectors),
      barrier_(plan_.neighbours) {}

void Dpsgd::Handle(Event event, Actions& actions) {
  if (const auto* started = std::get_if<Started>(&event)) {
    round_ = started->step;
    gradient_ready_ = false;
  } else if (std::holds_alternative<StepBegins>(event)) {
    barrier_.BeginRound();
    if (!barrier_.empty()) {
      actions.push_back(Push{barrier_.peers(), round_});
    }
    actions.push_back(ComputeGradient{});
  } else if (std::holds_alternative<GradientReady>(event)) {
    gradient_ready_ = true;
    if (!barrier_.Complete(round_)) {
      actions.push_back(WakeAfter{kDeadlineTimer, plan_.exchange_deadline});
    }
    FinishIfComplete(actions);
  } else if (auto* push = std::get_if<PushArrived>(&event)) {
    barrier_.Add(push->from, std::move(push->model), round_,
                 plan_.knobs.Integer("max_lag"));
    FinishIfComplete(actions);
  } else if (const auto* timer = std::get_if<TimerFired>(&event)) {
    if (timer->timer == kDeadlineTimer && gradient_ready_) {
      actions.push_back(barrier_.Missing(round_));
      Finish(actions);
    }
  } else if (const auto* up = std::get_if<PeerUp>(&event)) {
    barrier_.SetUp(up->peer, true);
  } else if (const auto* down = std::get_if<PeerDown>(&event)) {
    barrier_.SetUp(down->peer, false);
    FinishIfComplete(actions);
  } else if (auto* changed = std::get_if<PlanChanged>(&event)) {
    plan_ = std::move(changed->plan);
    barrier_.SetNeighbours(plan_.neighbours);
  } else if (const auto* asked = std::get_if<AskArrived>(&event)) {
    actions.push_back(Answer{asked->from, asked->ask, 1, 0});
  }
}

void Dpsgd::FinishIfComplete(Actions& actions) {
  if (gradient_ready_ && barrier_.Complete(round_)) Finish(actions);
}

void Dpsgd::Finish(Actions& actions) {
  actions.push_back(CancelTimer{kDeadlineTimer});
  gradient_ready_ = false;
  const auto arrivals = barrier_.Take(round_, plan_.knobs.Integer("max_lag"));
  MixArrivals(arrivals, vectors_.parameters, vectors_.buffers);
  AddScaled(static_cast<float>(-plan_.knobs.Number("eta")), vectors_.gradient,
            vectors_.parameters);
  ++round_;
  ++gradients_;
  actions.push_back(StepDone{});
}

std::map<std::string, double> Dpsgd::Gauges() const {
  return {{"dropped_late", static_cast<double>(barrier_.dropped())},
          {"step_size", plan_.knobs.Number("eta")}};
}

}  // namespace dfl::core
