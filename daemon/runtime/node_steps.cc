// Steps: what happens at boundaries, and what the algorithm asks for.
#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/runtime/node.h"

namespace dfl::runtime {

using ports::Phase;

bool Node::Settled() const {
  return initialised_ && (!algorithm_ || algorithm_->parameters_settled());
}

// -------------------------------------------------------------- boundaries ----

void Node::ScheduleBoundary() {
  if (boundary_posted_) return;
  boundary_posted_ = true;
  loop_.Post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    boundary_posted_ = false;
    OnBoundary();
  });
}

void Node::OnBoundary() {
  if (!at_boundary_) return;
  for (const NodeId& peer : std::exchange(leaving_, {})) RefreshActive(peer);
  DoBoundaryWork();
  AdoptPending();
  ServeAsks();
  if (!Running()) return;
  if (wanted_ != Phase::kIdle) {
    EndJoin();
    const Phase wanted = std::exchange(wanted_, Phase::kIdle);
    SetPhase(wanted,
             wanted == Phase::kPaused ? "paused by hand" : "stopped by hand");
    return;
  }
  if (join_) {
    ContinueJoin();
    return;
  }
  const int64_t furthest = FurthestRound();
  if (furthest > algorithm_->step()) algorithm_->JumpTo(furthest);
  std::string why;
  // The learner does one thing at a time: what needs it waits for a gradient
  // that has outlived its step.
  const bool busy = running_gradient_ != 0;
  if (StopRuleMet(&why)) {
    if (!busy) Finish(why);
    return;
  }
  evaluation_owed_ = evaluation_owed_ || EvaluationDue();
  if (evaluation_owed_ && !busy) {
    evaluation_owed_ = false;
    Evaluate(plan_->evaluation.examples, [this] { ScheduleBoundary(); });
    return;
  }
  FollowTopology();
  if (AwaitsStart()) return;
  LeaveBoundary();
  Handle(core::StepBegins{});
}

void Node::LeaveBoundary() {
  at_boundary_ = false;
  boundary_buffers_ = buffers_;
}

// The furthest round of the active neighbours that have gone past a round in
// which they should have waited for us: further than 1,000 rounds away
// only when two of them say so. Where the topology varies, one that has not met
// us since our round may well be ahead; it is followed when it has passed a
// round in which it should have waited for us.
int64_t Node::FurthestRound() const {
  auto info = core::FindAlgorithm(plan_->algorithm.name);
  if (!info.ok() || !(*info)->lock_step) return 0;
  const bool varies = core::TopologyVaries(plan_->topology);
  const int64_t own = algorithm_->step();
  const int64_t exchange = algorithm_->NextExchange(own);
  std::vector<int64_t> far;
  int64_t furthest = own;
  for (const auto& [peer, state] : peers_) {
    const int64_t step = state.state.step;
    if (step <= exchange || !Active(peer)) continue;
    if (!(varies ? core::MeetWithin(*plan_, options_.self, peer, own, step)
                 : IsNeighbour(peer))) {
      continue;
    }
    if (step > own + 1000) {
      far.push_back(step);
    } else {
      furthest = std::max(furthest, step);
    }
  }
  if (far.size() >= 2) {
    std::sort(far.begin(), far.end());
    furthest = far[far.size() - 2];
  }
  if (plan_->stop.steps > 0) furthest = std::min(furthest, plan_->stop.steps);
  return furthest;
}

bool Node::IsOfLaterGraph(int64_t round) const {
  return algorithm_ && core::TopologyVaries(plan_->topology) &&
         round >= core::NextGraphRound(plan_->topology, algorithm_->step());
}

void Node::FollowTopology() {
  const int64_t round = algorithm_->step();
  const int64_t number = core::GraphNumber(plan_->topology, round);
  if (number != graph_number_) {
    auto next = core::DeriveCheckedNodePlan(*plan_, options_.self, round);
    if (!next.ok()) return;  // the plan was checked
    graph_number_ = number;
    if (!core::SameNeighbours(node_plan_, *next)) {
      node_plan_ = *std::move(next);
      Handle(core::PlanChanged{node_plan_});
    }
  }
  for (auto& [peer, rounds] : early_) {
    while (!rounds.empty() && !IsOfLaterGraph(rounds.begin()->first)) {
      core::RemoteModel model = std::move(rounds.begin()->second);
      rounds.erase(rounds.begin());
      Handle(core::PushArrived{peer, std::move(model)});
    }
  }
}

bool Node::StopRuleMet(std::string* why) const {
  const core::StopRule& stop = plan_->stop;
  if (!algorithm_) return false;
  if (stop.steps > 0 && algorithm_->step() >= stop.steps) {
    *why = absl::StrCat(stop.steps, " steps are done");
    return true;
  }
  if (progress_.TrainingTime(loop_.Now()) >= stop.time) {
    *why = absl::StrCat("it trained for ", absl::FormatDuration(stop.time));
    return true;
  }
  if (!evaluation_) return false;
  if (stop.loss_below > 0 && evaluation_->loss < stop.loss_below) {
    *why = absl::StrCat("the loss is below ", stop.loss_below);
    return true;
  }
  if (stop.accuracy_above > 0 && evaluation_->accuracy > stop.accuracy_above) {
    *why = absl::StrCat("the accuracy is above ", stop.accuracy_above);
    return true;
  }
  return false;
}

bool Node::EvaluationDue() const {
  const int64_t every = plan_->evaluation.every_steps;
  const int64_t step = algorithm_->step();
  return every > 0 && step > 0 && step % every == 0 &&
         evaluated_step_ != step && trainer_->data().test_rows > 0;
}

void Node::Evaluate(int64_t rows, std::function<void()> then) {
  LeaveBoundary();
  CopyToLearner();
  trainer_->Evaluate(rows, [this, rows, then = std::move(then),
                            alive = std::weak_ptr<bool>(alive_)](
                               absl::StatusOr<ports::Evaluation> result) {
    if (alive.expired()) return;
    at_boundary_ = true;
    evaluated_step_ = algorithm_->step();
    evaluated_rows_ = rows;
    if (result.ok()) {
      evaluation_ = *result;
      events_.Report(ports::Evaluated{evaluated_step_, *result});
    } else {
      last_error_ = std::string(result.status().message());
      events_.Report(ports::LearnerFailed{evaluated_step_, result.status()});
    }
    then();
  });
}

// The last evaluation takes all the test rows.
void Node::Finish(const std::string& why) {
  const bool evaluated =
      evaluated_step_ == algorithm_->step() && evaluated_rows_ == 0;
  if (trainer_->data().test_rows == 0 || evaluated) {
    SetPhase(Phase::kFinished, why);
    return;
  }
  Evaluate(0, [this, why] {
    SetPhase(Phase::kFinished, why);
    ScheduleBoundary();
  });
}

void Node::DoBoundaryWork() {
  const std::vector<std::function<void()>> work =
      std::exchange(at_boundary_do_, {});
  for (const auto& f : work) f();
}

// --------------------------------------------------------------- algorithm ----

void Node::StopAlgorithm() {
  for (const auto& [id, timer] : timers_) loop_.Cancel(timer);
  timers_.clear();
  for (auto it = asks_.begin(); it != asks_.end();) {
    if (IsStateAsk(it->first)) {  // not the algorithm's
      ++it;
      continue;
    }
    for (const NodeId& peer : it->second) {
      (void)links_.Send(peer, ports::CancelAskFrame{it->first});
      transfers_.CancelInbound(peer, it->first);
    }
    it = asks_.erase(it);
  }
  for (auto& [peer, state] : peers_) {
    state.next_push.reset();
    state.next_apart.reset();
  }
  queue_.clear();
  next_gradient_.reset();
  next_prediction_.reset();
  early_.clear();
  algorithm_.reset();
}

void Node::RestartAlgorithm(int64_t step) {
  StopAlgorithm();
  start_until_ = absl::InfinitePast();
  loop_.Cancel(std::exchange(start_timer_, 0));
  ++epoch_;
  auto info = core::FindAlgorithm(plan_->algorithm.name);
  if (info.ok() && (*info)->computes_on_copy) ComputeOnCopy();
  decisions_ = std::make_unique<core::SeededDecisions>(
      DeriveSeed(plan_->seed, options_.self.name()),
      DeriveSeed(step, plan_->algorithm.name));
  core::AlgorithmContext context;
  context.plan = node_plan_;
  context.vectors =
      core::NodeVectors{absl::MakeSpan(parameters_), absl::MakeSpan(gradient_),
                        absl::MakeSpan(buffers_)};
  context.batches_per_pass = std::max<int64_t>(
      1, (trainer_->data().train_rows + plan_->batch_size - 1) /
             plan_->batch_size);
  context.train_rows = trainer_->data().train_rows;
  context.mass_code = &mass_codec_;
  auto made = core::CreateAlgorithm(plan_->algorithm.name, std::move(context),
                                    *decisions_);
  if (!made.ok()) return;  // the plan was checked
  algorithm_ = *std::move(made);
  // What was given and taken is forgotten here.
  if (!parcels_.partners().empty()) parcels_.Enter(parcels_.epoch() + 1);
  if (GivesMass() && parcels_.epoch() == 0) parcels_.Enter(1);
  Handle(core::Started{step});
  for (const auto& [peer, state] : peers_) {
    if (state.known) FollowEpoch(peer, state.state.tracker_epoch);
  }
  for (auto& [peer, state] : peers_) {
    state.active = false;
    RefreshActive(peer);
  }
}

void Node::Handle(core::Event event) {
  if (!algorithm_) return;
  if (handling_) {
    queue_.push_back(std::move(event));
    return;
  }
  struct CarryOut final : core::Actions {
    explicit CarryOut(Node& of) : node(of) {}
    void Do(core::Action action) override { node.Do(std::move(action)); }
    Node& node;
  } actions(*this);
  handling_ = true;
  while (true) {
    algorithm_->Handle(std::move(event), actions);
    if (queue_.empty() || !algorithm_) break;
    event = std::move(queue_.front());
    queue_.pop_front();
  }
  handling_ = false;
  if (!waiting_asks_.empty()) ServeAsks();
}

void Node::Do(core::Action action) {
  std::visit([this](const auto& a) { Do(a); }, action);
}

void Node::Do(const core::ComputeGradient& action) {
  if (running_gradient_ != 0) {
    next_gradient_ = action;
    return;
  }
  if (phase_ == Phase::kDegraded && loop_.Now() < retry_at_) {
    StandStill();
    return;
  }
  gradient_began_ = loop_.Now();
  ports::GradientRequest request;
  // Batches that nothing came of (degraded) are not counted.
  request.same_batch = action.same_batch && gradients_ > 0;
  request.step = request.same_batch ? gradients_ - 1 : gradients_;
  request.batch_size = plan_->batch_size;
  CopyToLearner(action.at ? absl::MakeConstSpan(*action.at)
                          : absl::Span<const float>());
  copied_buffers_ = compute_buffers_;
  running_gradient_ = ++last_gradient_;
  trainer_->Gradient(request,
                     [this, gradient = running_gradient_, epoch = epoch_,
                      alive = std::weak_ptr<bool>(alive_)](
                         absl::StatusOr<ports::GradientResult> r) {
                       if (!alive.expired())
                         OnGradient(gradient, epoch, std::move(r));
                     });
}

void Node::OnGradient(uint64_t gradient, uint64_t epoch,
                      absl::StatusOr<ports::GradientResult> result) {
  if (gradient != running_gradient_) return;  // of a trainer that is gone
  running_gradient_ = 0;
  if (at_boundary_) ScheduleBoundary();  // what waited for the learner
  if (epoch != epoch_) {
    DoNext();
    return;
  }
  if (result.ok()) {
    // What the gradient changed in its copy of the buffers.
    for (size_t l = 0; l < compute_buffers_.size(); ++l) {
      buffers_[l] =
          buffers_[l] == copied_buffers_[l]
              ? compute_buffers_[l]
              : buffers_[l] + (compute_buffers_[l] - copied_buffers_[l]);
    }
    ++gradients_;
    gradient_time_ = loop_.Now() - gradient_began_;
    progress_.OnGradient(result->loss);
    if (phase_ == Phase::kDegraded) {
      last_error_.clear();
      SetPhase(Phase::kTraining, "training works again");
    }
    Handle(core::GradientReady{result->loss, result->rows});
    return;
  }
  // Degraded: this node does not train but mixes and answers on, at the pace it
  // had, so that nobody waits for it.
  if (last_error_ != result.status().message()) {
    last_error_ = std::string(result.status().message());
    events_.Report(ports::LearnerFailed{algorithm_->step(), result.status()});
  }
  std::fill(gradient_.begin(), gradient_.end(), 0.0F);
  if (!Running()) {  // paused meanwhile
    Handle(core::GradientReady{});
    return;
  }
  SetPhase(Phase::kDegraded, last_error_);
  // What failed may have left anything in the module buffers.
  if (!computes_on_copy()) {
    std::copy(boundary_buffers_.begin(), boundary_buffers_.end(),
              buffers_.begin());
  }
  retry_at_ = loop_.Now() + options_.degraded_retry;
  StandStill();
}

void Node::DoNext() {
  if (next_gradient_) Do(*std::exchange(next_gradient_, std::nullopt));
  if (next_prediction_) Do(*std::exchange(next_prediction_, std::nullopt));
}

void Node::Do(const core::Predict& action) {
  if (running_gradient_ != 0) {
    next_prediction_ = action;
    return;
  }
  ports::PredictRequest request;
  request.batch_size = plan_->batch_size;
  request.models = action.models;
  CopyToLearner();
  running_gradient_ = ++last_gradient_;
  trainer_->Predict(request,
                    [this, prediction = running_gradient_, epoch = epoch_,
                     alive = std::weak_ptr<bool>(alive_)](
                        absl::StatusOr<ports::Predictions> r) {
                      if (!alive.expired()) {
                        OnPredictions(prediction, epoch, std::move(r));
                      }
                    });
}

// One that failed is reported; training goes on, and degrades by itself.
void Node::OnPredictions(uint64_t prediction, uint64_t epoch,
                         absl::StatusOr<ports::Predictions> result) {
  if (prediction != running_gradient_) return;  // of a trainer that is gone
  running_gradient_ = 0;
  if (at_boundary_) ScheduleBoundary();  // what waited for the learner
  if (epoch != epoch_) {
    DoNext();
    return;
  }
  core::Predicted event;
  if (result.ok()) {
    event.rows = result->rows;
    event.probabilities = std::move(result->probabilities);
  } else {
    last_error_ = std::string(result.status().message());
    events_.Report(ports::LearnerFailed{algorithm_->step(), result.status()});
  }
  Handle(std::move(event));
}

void Node::StandStill() {
  const absl::Duration pace = std::min(
      std::max(gradient_time_, absl::Milliseconds(1)), options_.degraded_retry);
  loop_.After(pace,
              [this, epoch = epoch_, alive = std::weak_ptr<bool>(alive_)] {
                if (alive.expired() || epoch != epoch_) return;
                Handle(core::GradientReady{});
              });
}

void Node::Do(const core::WakeAfter& action) {
  ports::TimerId& timer = timers_[action.timer];
  if (timer != 0) loop_.Cancel(timer);
  timer = loop_.After(action.delay, [this, id = action.timer] {
    timers_.erase(id);
    Handle(core::TimerFired{id});
  });
}

void Node::Do(const core::CancelTimer& action) {
  const auto it = timers_.find(action.timer);
  if (it == timers_.end()) return;
  loop_.Cancel(it->second);
  timers_.erase(it);
}

void Node::Do(const core::StepDone& /*action*/) {
  ++generation_;
  at_boundary_ = true;
  progress_.OnStep(algorithm_->step(), loop_.Now());
  events_.Report(ports::StepFinished{algorithm_->step(), progress_.loss()});
  ScheduleBoundary();
}

}  // namespace dfl::runtime
