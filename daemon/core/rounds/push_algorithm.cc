#include "daemon/core/rounds/push_algorithm.h"

#include <algorithm>
#include <utility>

#include "daemon/core/algorithm/dispatch.h"
#include "daemon/core/algorithm/state_fields.h"

namespace dfl::core {

PushAlgorithm::PushAlgorithm(AlgorithmContext context,
                             std::vector<Neighbour> NodePlan::* heard)
    : plan_(std::move(context.plan)),
      heard_(heard),
      vectors_(context.vectors),
      barrier_(plan_.*heard_),
      max_lag_(MaxLagOf(plan_.knobs)),
      batches_per_pass_(std::max<int64_t>(1, context.batches_per_pass)) {}

void PushAlgorithm::Handle(Event event, Actions& actions) {
  Dispatch(
      std::move(event),
      [&](const Started& e) {
        round_ = e.step;
        BeginPace(e);
        OnStarted();
      },
      [&](StepBegins) { OnStepBegins(actions); },
      [&](const GradientReady& e) {
        NoteGradient(e);
        OnGradient(actions);
      },
      [&](PushArrived e) {
        OnPush(e.model);
        barrier_.Add(e.from, std::move(e.model), round_, max_lag_);
        MixIfComplete(actions);
      },
      [&](const TimerFired& e) { OnTimer(e.timer, actions); },
      [&](const PeerUp& e) {
        barrier_.SetUp(e.peer, true);
        if (e.heard_again) barrier_.AwaitAgain(e.peer);
      },
      [&](const PeerDown& e) {
        if (e.silent) {
          barrier_.SetSilent(e.peer);
        } else {
          barrier_.SetUp(e.peer, false);
        }
        MixIfComplete(actions);
      },
      [&](PlanChanged e) {
        plan_ = std::move(e.plan);
        barrier_.SetNeighbours(plan_.*heard_);
        max_lag_ = MaxLagOf(plan_.knobs);
        if (e.batches_per_pass > 0) batches_per_pass_ = e.batches_per_pass;
        OnPlanChanged();
      },
      [&](const AskArrived& e) { actions.Do(Answer{e.from, e.ask, 1, 0}); },
      [&](MassArrived e) { OnMass(std::move(e), actions); },
      [&](const Delivered& e) { OnMass(e, actions); },
      [&](const Skipped& e) { OnMass(e, actions); },
      [&](EpochBegins e) { OnMass(e, actions); },
      Ignored<AnswerArrived, AnswerMissing, Predicted>());
}

void PushAlgorithm::VisitState(StateFields& fields) {
  fields.Count("step", round_);
  barrier_.VisitState(fields);
}

void PushAlgorithm::MixModels(absl::Span<const PushBarrier::Arrival> arrivals,
                              absl::Span<float> parameters, double share) {
  if (!plan_.aggregation.robust()) {
    MixArrivals(arrivals, parameters, vectors_.buffers);
    return;
  }
  std::vector<ModelMixer::Model> models;
  models.reserve(arrivals.size());
  for (const PushBarrier::Arrival& arrival : arrivals) {
    models.push_back({&arrival.model, arrival.weight});
  }
  mixer_.Mix(plan_.aggregation, models, share, parameters, vectors_.buffers);
}

void PushAlgorithm::EndRound(Actions& actions) {
  if (IsRound()) CountRound();
  ++round_;
  actions.Do(StepDone{});
}

}  // namespace dfl::core
