#include "daemon/core/push_rounds.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace dfl::core {
namespace {

constexpr uint64_t kDeadlineTimer = 1;
constexpr uint64_t kPushedTimer = 2;

}  // namespace

PushRounds::PushRounds(AlgorithmContext context)
    : plan_(std::move(context.plan)),
      vectors_(context.vectors),
      barrier_(plan_.neighbours) {}

void PushRounds::Handle(Event event, Actions& actions) {
  if (const auto* started = std::get_if<Started>(&event)) {
    round_ = started->step;
    in_round_ = waiting_ = false;
  } else if (std::holds_alternative<StepBegins>(event)) {
    Begin(actions);
  } else if (std::holds_alternative<GradientReady>(event)) {
    OnGradient(actions);
  } else if (auto* push = std::get_if<PushArrived>(&event)) {
    barrier_.Add(push->from, std::move(push->model), round_, MaxLag());
    MixIfComplete(actions);
  } else if (const auto* timer = std::get_if<TimerFired>(&event)) {
    if (timer->timer == kDeadlineTimer && waiting_) {
      actions.push_back(barrier_.Missing(round_));
      EndWait(actions);
    } else {
      MixIfComplete(actions);
    }
  } else if (const auto* up = std::get_if<PeerUp>(&event)) {
    barrier_.SetUp(up->peer, true);
  } else if (const auto* down = std::get_if<PeerDown>(&event)) {
    barrier_.SetUp(down->peer, false);
    MixIfComplete(actions);
  } else if (auto* changed = std::get_if<PlanChanged>(&event)) {
    plan_ = std::move(changed->plan);
    barrier_.SetNeighbours(plan_.neighbours);
  } else if (const auto* asked = std::get_if<AskArrived>(&event)) {
    actions.push_back(Answer{asked->from, asked->ask, 1, 0});
  }
}

void PushRounds::Begin(Actions& actions) {
  in_round_ = true;
  BeginRound();
  order_ = RoundOrder();
  barrier_.BeginRound(Senders());
  if (order_ == Order::kTrainPushMix) {
    Train(actions);
    return;
  }
  PushOut(actions);
  if (order_ == Order::kPushMixTrain) {
    Wait(actions);
  } else {
    Train(actions);
  }
}

void PushRounds::PushOut(Actions& actions) {
  std::vector<NodeId> receivers = Receivers();
  if (!receivers.empty()) {
    actions.push_back(Push{std::move(receivers), round_});
  }
}

void PushRounds::Train(Actions& actions) {
  BeforeTraining();
  actions.push_back(ComputeGradient{});
}

void PushRounds::OnGradient(Actions& actions) {
  const Next next = AfterGradient();
  if (next == Next::kSameBatch) {
    actions.push_back(ComputeGradient{/*same_batch=*/true});
    return;
  }
  ++gradients_;
  if (next == Next::kNextBatch) {
    actions.push_back(ComputeGradient{});
    return;
  }
  if (order_ == Order::kPushMixTrain) {
    Finish(actions);
    return;
  }
  if (order_ == Order::kTrainPushMix) PushOut(actions);
  Wait(actions);
}

void PushRounds::Wait(Actions& actions) {
  waiting_ = true;
  timer_ = kDeadlineTimer;
  if (!barrier_.Complete(round_)) {
    actions.push_back(WakeAfter{timer_, Deadline()});
  } else if (!actions.empty()) {
    // A push is among them, and is carried out when we are back: only then the
    // parameters may change.
    timer_ = kPushedTimer;
    actions.push_back(WakeAfter{timer_, absl::ZeroDuration()});
  } else {
    EndWait(actions);
  }
}

void PushRounds::MixIfComplete(Actions& actions) {
  if (waiting_ && barrier_.Complete(round_)) EndWait(actions);
}

void PushRounds::EndWait(Actions& actions) {
  waiting_ = false;
  actions.push_back(CancelTimer{timer_});
  Mix(barrier_.Take(round_, MaxLag()));
  AfterMix(actions);
  if (order_ == Order::kPushMixTrain) {
    Train(actions);
  } else {
    Finish(actions);
  }
}

void PushRounds::Finish(Actions& actions) {
  in_round_ = false;
  ++round_;
  actions.push_back(StepDone{});
}

std::vector<NodeId> CompleteMembers(const NodePlan& plan) {
  std::vector<NodeId> members = {plan.self};
  for (const Neighbour& neighbour : plan.neighbours) {
    members.push_back(neighbour.node);
  }
  std::sort(members.begin(), members.end());
  return members;
}

std::map<std::string, double> PushRounds::Gauges() const {
  return {{"dropped_late", static_cast<double>(barrier_.dropped())},
          {"step_size", StepSize()}};
}

}  // namespace dfl::core
