#include "daemon/core/push_rounds.h"

#include <utility>
#include <variant>

namespace dfl::core {
namespace {

constexpr uint64_t kDeadlineTimer = 1;

}  // namespace

PushRounds::PushRounds(AlgorithmContext context)
    : plan_(std::move(context.plan)),
      vectors_(context.vectors),
      barrier_(plan_.neighbours) {}

void PushRounds::Handle(Event event, Actions& actions) {
  if (const auto* started = std::get_if<Started>(&event)) {
    round_ = started->step;
    in_round_ = trained_ = false;
  } else if (std::holds_alternative<StepBegins>(event)) {
    in_round_ = true;
    barrier_.BeginRound();
    if (!barrier_.empty()) actions.push_back(Push{barrier_.peers(), round_});
    BeforeTraining();
    actions.push_back(ComputeGradient{});
  } else if (std::holds_alternative<GradientReady>(event)) {
    OnGradient(actions);
  } else if (auto* push = std::get_if<PushArrived>(&event)) {
    barrier_.Add(push->from, std::move(push->model), round_,
                 plan_.knobs.Integer("max_lag"));
    FinishIfComplete(actions);
  } else if (const auto* timer = std::get_if<TimerFired>(&event)) {
    if (timer->timer == kDeadlineTimer && trained_) {
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

void PushRounds::OnGradient(Actions& actions) {
  ++gradients_;
  if (AfterGradient()) {
    actions.push_back(ComputeGradient{});
    return;
  }
  trained_ = true;
  if (!barrier_.Complete(round_)) {
    actions.push_back(WakeAfter{kDeadlineTimer, plan_.exchange_deadline});
  }
  FinishIfComplete(actions);
}

void PushRounds::FinishIfComplete(Actions& actions) {
  if (trained_ && barrier_.Complete(round_)) Finish(actions);
}

void PushRounds::Finish(Actions& actions) {
  actions.push_back(CancelTimer{kDeadlineTimer});
  Mix(barrier_.Take(round_, plan_.knobs.Integer("max_lag")));
  in_round_ = trained_ = false;
  ++round_;
  actions.push_back(StepDone{});
}

std::map<std::string, double> PushRounds::Gauges() const {
  return {{"dropped_late", static_cast<double>(barrier_.dropped())},
          {"step_size", StepSize()}};
}

}  // namespace dfl::core
