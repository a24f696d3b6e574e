#include "daemon/core/rounds/push_algorithm.h"

#include <utility>
#include <variant>

#include "daemon/core/algorithm/state_fields.h"

namespace dfl::core {

PushAlgorithm::PushAlgorithm(AlgorithmContext context,
                             std::vector<Neighbour> NodePlan::* heard)
    : plan_(std::move(context.plan)),
      heard_(heard),
      vectors_(context.vectors),
      barrier_(plan_.*heard_) {}

void PushAlgorithm::Handle(Event event, Actions& actions) {
  if (const auto* started = std::get_if<Started>(&event)) {
    round_ = started->step;
    OnStarted();
  } else if (std::holds_alternative<StepBegins>(event)) {
    OnStepBegins(actions);
  } else if (std::holds_alternative<GradientReady>(event)) {
    OnGradient(actions);
  } else if (auto* push = std::get_if<PushArrived>(&event)) {
    OnPush(push->model);
    barrier_.Add(push->from, std::move(push->model), round_, MaxLag());
    MixIfComplete(actions);
  } else if (const auto* timer = std::get_if<TimerFired>(&event)) {
    OnTimer(timer->timer, actions);
  } else if (const auto* up = std::get_if<PeerUp>(&event)) {
    barrier_.SetUp(up->peer, true);
  } else if (const auto* down = std::get_if<PeerDown>(&event)) {
    barrier_.SetUp(down->peer, false);
    MixIfComplete(actions);
  } else if (auto* changed = std::get_if<PlanChanged>(&event)) {
    plan_ = std::move(changed->plan);
    barrier_.SetNeighbours(plan_.*heard_);
    OnPlanChanged();
  } else if (const auto* asked = std::get_if<AskArrived>(&event)) {
    actions.Do(Answer{asked->from, asked->ask, 1, 0});
  } else {
    OnOther(std::move(event), actions);
  }
}

void PushAlgorithm::VisitState(StateFields& fields) {
  fields.Count("step", round_);
  fields.Count("gradients", gradients_);
  barrier_.VisitState(fields);
}

void PushAlgorithm::EndRound(Actions& actions) {
  ++round_;
  actions.Do(StepDone{});
}

}  // namespace dfl::core
