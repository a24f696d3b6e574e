// Steps: what happens at boundaries, and what the algorithm asks for.
#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/runtime/node.h"

namespace dfl::runtime {

using ports::Phase;

bool Node::Settled() const {
  return model_.initialised() &&
         (!algorithm_.get() || algorithm_.get()->parameters_settled());
}

// -------------------------------------------------------------- boundaries ----

void Node::OnBoundary() {
  if (!boundary_.here()) return;
  for (const NodeId& peer : peers_.TakeLeaving()) RefreshActive(peer);
  boundary_.DoWork();
  AdoptPending();
  ServeAsks();
  if (!Running() || ObeyWanted()) return;
  if (joining_.searching()) {
    joining_.Continue();
    return;
  }
  const int64_t furthest = FurthestRound();
  if (furthest > algorithm_.step()) algorithm_.get()->JumpTo(furthest);
  if (EvaluateOrFinish()) return;
  FollowTopology();
  if (joining_.AwaitsOthers()) return;
  LeaveBoundary();
  Handle(core::StepBegins{});
}

bool Node::ObeyWanted() {
  if (wanted_ == Phase::kIdle) return false;
  joining_.End();
  const Phase wanted = std::exchange(wanted_, Phase::kIdle);
  SetPhase(wanted,
           wanted == Phase::kPaused ? "paused by hand" : "stopped by hand");
  return true;
}

bool Node::EvaluateOrFinish() {
  // The learner does one thing at a time: what needs it waits for a gradient
  // that has outlived its step.
  const bool busy = learner_.busy();
  std::string why;
  if (StopRuleMet(&why)) {
    if (!busy) Finish(why);
    return true;
  }
  evaluations_.owed = evaluations_.owed || EvaluationDue();
  if (!evaluations_.owed || busy) return false;
  evaluations_.owed = false;
  Evaluate(run_.plan().evaluation.examples, [this] { boundary_.Schedule(); });
  return true;
}

void Node::LeaveBoundary() {
  boundary_.Leave();
  model_.LeaveBoundary();
}

int64_t Node::FurthestRound() const {
  if (!run_.lock_step()) return 0;
  const int64_t own = algorithm_.step();
  const int64_t furthest = peers_.FurthestRound(
      options_.self, own, algorithm_.get()->NextExchange(own));
  const int64_t last = run_.plan().stop.steps;
  return last > 0 ? std::min(furthest, last) : furthest;
}

void Node::FollowTopology() {
  if (run_.FollowTopology(algorithm_.step())) {
    Handle(core::PlanChanged{run_.node()});
  }
  early_.Deliver([this](int64_t round) { return IsOfLaterGraph(round); },
                 [this](const NodeId& from, core::RemoteModel model) {
                   Handle(core::PushArrived{from, std::move(model)});
                 });
}

bool Node::StopRuleMet(std::string* why) const {
  const core::StopRule& stop = run_.plan().stop;
  if (!algorithm_.get()) return false;
  if (stop.steps > 0 && algorithm_.step() >= stop.steps) {
    *why = absl::StrCat(stop.steps, " steps are done");
    return true;
  }
  if (progress_.TrainingTime(loop_.Now()) >= stop.time) {
    *why = absl::StrCat("it trained for ", absl::FormatDuration(stop.time));
    return true;
  }
  if (!evaluations_.last) return false;
  if (stop.loss_below > 0 && evaluations_.last->loss < stop.loss_below) {
    *why = absl::StrCat("the loss is below ", stop.loss_below);
    return true;
  }
  if (stop.accuracy_above > 0 &&
      evaluations_.last->accuracy > stop.accuracy_above) {
    *why = absl::StrCat("the accuracy is above ", stop.accuracy_above);
    return true;
  }
  return false;
}

bool Node::EvaluationDue() const {
  const int64_t every = run_.plan().evaluation.every_steps;
  const int64_t step = algorithm_.step();
  return every > 0 && step > 0 && step % every == 0 &&
         evaluations_.step != step && learner_.trainer()->data().test_rows > 0;
}

void Node::Evaluate(int64_t rows, std::function<void()> then) {
  LeaveBoundary();
  learner_.Evaluate(rows, [this, rows, then = std::move(then)](
                              absl::StatusOr<ports::Evaluation> result) {
    boundary_.Reach();
    evaluations_.step = algorithm_.step();
    evaluations_.rows = rows;
    if (result.ok()) {
      evaluations_.last = *result;
      events_.Report(ports::Evaluated{evaluations_.step, *result});
    } else {
      ReportLearnerFailed(result.status());
    }
    then();
  });
}

// The last evaluation takes all the test rows.
void Node::Finish(const std::string& why) {
  const bool evaluated =
      evaluations_.step == algorithm_.step() && evaluations_.rows == 0;
  if (learner_.trainer()->data().test_rows == 0 || evaluated) {
    SetPhase(Phase::kFinished, why);
    return;
  }
  Evaluate(0, [this, why] {
    SetPhase(Phase::kFinished, why);
    boundary_.Schedule();
  });
}

// --------------------------------------------------------------- algorithm ----

void Node::StopAlgorithm() {
  for (const auto& [ask, peers] : asks_.CloseAlgorithms()) {
    for (const NodeId& peer : peers) {
      (void)links_.Send(peer, ports::CancelAskFrame{ask});
      transfers_.CancelInbound(peer, ask);
    }
  }
  pushes_.DropWaiting();
  learner_.DropWaiting();
  early_.Clear();
  algorithm_.Stop();
}

void Node::MakeAlgorithm(int64_t step) {
  const core::RunPlan& plan = run_.plan();
  auto decisions = std::make_unique<core::SeededDecisions>(
      DeriveSeed(plan.seed, options_.self.name()),
      DeriveSeed(step, plan.algorithm.name));
  const int64_t rows = learner_.trainer()->data().train_rows;
  core::AlgorithmContext context;
  context.plan = run_.node();
  context.vectors = core::NodeVectors{model_.parameters(), model_.gradient(),
                                      model_.buffers()};
  context.batches_per_pass =
      std::max<int64_t>(1, (rows + plan.batch_size - 1) / plan.batch_size);
  context.train_rows = rows;
  context.mass_code = &mass_codec_;
  auto made =
      core::CreateAlgorithm(*run_.algorithm(), std::move(context), *decisions);
  algorithm_.Install(std::move(made), std::move(decisions));
}

void Node::RestartAlgorithm(int64_t step) {
  StopAlgorithm();
  joining_.WaitForOthers(absl::InfinitePast());
  algorithm_.BeginEpoch();
  learner_.BeginEpoch();
  const core::AlgorithmInfo* info = run_.algorithm();
  if (info && info->computes_on_copy) learner_.ComputeOnCopy();
  MakeAlgorithm(step);
  // What was given and taken is forgotten here.
  if (!parcels_.partners().empty()) parcels_.Enter(parcels_.epoch() + 1);
  if (GivesMass() && parcels_.epoch() == 0) parcels_.Enter(1);
  Handle(core::Started{step});
  for (const auto& [id, peer] : peers_.all()) {
    if (peer.known) FollowEpoch(id, peer.state.tracker_epoch);
  }
  for (const auto& [id, peer] : peers_.all()) {
    peers_.Untell(id);
    RefreshActive(id);
  }
}

void Node::OnHandled() {
  if (asks_.waiting()) ServeAsks();
}

void Node::Do(const core::ComputeGradient& action) {
  learner_.ComputeGradient(action);
}

void Node::Do(const core::Predict& action) { learner_.Predict(action); }

void Node::OnLearnerFree() {
  if (boundary_.here()) boundary_.Schedule();  // what waited for the learner
}

void Node::OnGradient(absl::StatusOr<ports::GradientResult> result) {
  if (result.ok()) {
    progress_.OnGradient(result->loss);
    if (phase_ == Phase::kDegraded) {
      last_error_.clear();
      SetPhase(Phase::kTraining, "training works again");
    }
    Handle(core::GradientReady{result->loss, result->rows});
    return;
  }
  if (last_error_ != result.status().message()) {
    ReportLearnerFailed(result.status());
  }
  const absl::Span<float> gradient = model_.gradient();
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  if (!Running()) {  // paused meanwhile
    Handle(core::GradientReady{});
    return;
  }
  SetPhase(Phase::kDegraded, last_error_);
  learner_.Retreat();
}

// One that failed is reported; training goes on, and degrades by itself.
void Node::OnPredictions(absl::StatusOr<ports::Predictions> result) {
  core::Predicted event;
  if (result.ok()) {
    event.rows = result->rows;
    event.probabilities = std::move(result->probabilities);
  } else {
    ReportLearnerFailed(result.status());
  }
  Handle(std::move(event));
}

void Node::ReportLearnerFailed(const absl::Status& status) {
  last_error_ = std::string(status.message());
  events_.Report(ports::LearnerFailed{algorithm_.step(), status});
}

void Node::Do(const core::StepDone& /*action*/) {
  model_.Changed();
  boundary_.Reach();
  progress_.OnStep(algorithm_.step(), loop_.Now());
  events_.Report(ports::StepFinished{algorithm_.step(), progress_.loss()});
  boundary_.Schedule();
}

}  // namespace dfl::runtime
