#include "daemon/core/rounds/push_rounds.h"

#include <algorithm>
#include <utility>

namespace dfl::core {

PushRounds::PushRounds(AlgorithmContext context)
    : PushAlgorithm(std::move(context)) {}

void PushRounds::OnStepBegins(Actions& actions) {
  in_round_ = true;
  BeginRound();
  order_ = RoundOrder();
  barrier().BeginRound(Senders());
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
    actions.Do(Push{std::move(receivers), step()});
  }
}

void PushRounds::Train(Actions& actions) {
  BeforeTraining();
  actions.Do(ComputeGradient{});
}

void PushRounds::OnGradient(Actions& actions) {
  const Next next = AfterGradient();
  if (next == Next::kSameBatch) {
    actions.Do(ComputeGradient{/*same_batch=*/true});
    return;
  }
  CountGradient();
  if (next == Next::kNextBatch) {
    actions.Do(ComputeGradient{});
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
  if (barrier().Complete(step())) {
    EndWait(actions);
  } else {
    actions.Do(WakeAfter{kDeadlineTimer, Deadline(), /*for_neighbours=*/true});
  }
}

void PushRounds::OnTimer(uint64_t timer, Actions& actions) {
  if (timer != kDeadlineTimer || !waiting_) return;
  actions.Do(barrier().Missing(step()));
  EndWait(actions);
}

void PushRounds::MixIfComplete(Actions& actions) {
  if (waiting_ && barrier().Complete(step())) EndWait(actions);
}

void PushRounds::Mix(std::vector<PushBarrier::Arrival> arrivals) {
  MixModels(arrivals, vectors().parameters);
}

void PushRounds::EndWait(Actions& actions) {
  waiting_ = false;
  actions.Do(CancelTimer{kDeadlineTimer});
  Mix(barrier().Take(step(), max_lag()));
  AfterMix(actions);
  if (order_ == Order::kPushMixTrain) {
    Train(actions);
  } else {
    Finish(actions);
  }
}

void PushRounds::Finish(Actions& actions) {
  in_round_ = false;
  EndRound(actions);
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
  std::map<std::string, double> gauges = {
      {"dropped_late", static_cast<double>(barrier().dropped())},
      {"step_size", StepSize()}};
  AddMixGauges(gauges);
  AddGauges(gauges);
  return gauges;
}

}  // namespace dfl::core
