#include "daemon/runtime/node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"

namespace dfl::runtime {

using ports::Phase;

Node::Node(NodeOptions options, ports::Loop& loop, Links& links,
           ports::Worker& worker, ports::EventSink& events)
    : options_(std::move(options)),
      loop_(loop),
      events_(events),
      links_(links),
      transfers_(options_.transfers, loop, worker, links, *this),
      parcels_(
          loop, transfers_,
          [this](const NodeId& peer) { return MayGive(peer); },
          [this](core::Delivered delivered) {
            if (!algorithm_) return;
            ++models_sent_;
            ++peers_[delivered.to].models_sent;
            dense_bytes_sent_ +=
                4 * algorithm_->MassLength(
                        static_cast<int64_t>(parameters_.size()));
            Handle(delivered);
          }) {}

Node::~Node() {
  for (const auto& [id, timer] : timers_) loop_.Cancel(timer);
  if (join_) loop_.Cancel(join_->timer);
  loop_.Cancel(start_timer_);
}

void Node::SetPhase(Phase phase, const std::string& reason) {
  phase_reason_ = reason;
  if (phase == phase_) return;
  const Phase from = phase_;
  phase_ = phase;
  if (Running()) {
    progress_.Resume(loop_.Now());
  } else {
    progress_.Pause(loop_.Now());
  }
  events_.Report(ports::PhaseChanged{from, phase, reason});
  TellState();
}

// ------------------------------------------------------------------ orders ----

absl::Status Node::Start() {
  if (phase_ != Phase::kIdle) return Resume();
  if (!plan_) {
    return absl::FailedPreconditionError(
        "there is no run plan yet; apply one first: dflctl plan apply FILE");
  }
  if (initialised_) {  // an imported model
    RestartAlgorithm(0);
    BeginTraining("started from the imported model");
  } else {
    BeginJoin();
  }
  return absl::OkStatus();
}

absl::Status Node::Pause() {
  if (!Running()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the node is ", ports::PhaseName(phase_),
                     "; only a training node can be paused"));
  }
  wanted_ = Phase::kPaused;
  ScheduleBoundary();  // it may wait at one for a neighbour's model
  return absl::OkStatus();
}

absl::Status Node::Resume() {
  if (Running() || phase_ == Phase::kJoining) {
    wanted_ = Phase::kIdle;
    return absl::OkStatus();
  }
  if (phase_ == Phase::kIdle) {
    return absl::FailedPreconditionError(
        "nothing to resume; start the run first: dflctl train start");
  }
  if (!initialised_) {
    BeginJoin();
    return absl::OkStatus();
  }
  std::string why;
  if (StopRuleMet(&why)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the stop rule is met (", why,
        "); raise it in the plan first, e.g. dflctl set stop.steps=N"));
  }
  if (!algorithm_) RestartAlgorithm(0);  // an imported model
  BeginTraining("resumed");
  return absl::OkStatus();
}

absl::Status Node::Stop() {
  switch (phase_) {
    case Phase::kIdle:
      return absl::FailedPreconditionError("nothing is running");
    case Phase::kStopped:
      return absl::OkStatus();
    case Phase::kTraining:
    case Phase::kDegraded:
      wanted_ = Phase::kStopped;
      ScheduleBoundary();
      return absl::OkStatus();
    default:
      EndJoin();
      SetPhase(Phase::kStopped, "stopped by hand");
      return absl::OkStatus();
  }
}

void Node::CopyModel(std::function<void(absl::StatusOr<SnapshotPtr>)> done) {
  if (!initialised_) {
    done(absl::FailedPreconditionError(
        "the node has no model yet; start or import one first"));
    return;
  }
  if (Settled()) {
    done(TakeSnapshot());
    return;
  }
  at_boundary_do_.push_back(
      [this, done = std::move(done)] { done(TakeSnapshot()); });
}

void Node::ReplaceModel(std::shared_ptr<const Snapshot> model,
                        std::function<void(absl::Status)> done) {
  if (!trainer_) {
    done(absl::FailedPreconditionError(
        "there is no run plan yet, so no model to replace; apply one first: "
        "dflctl plan apply FILE"));
    return;
  }
  if (model->parameters.size() != parameters_.size() ||
      model->buffers.size() != buffers_.size()) {
    done(absl::InvalidArgumentError(absl::StrCat(
        "the model has ", model->parameters.size(), " parameters and ",
        model->buffers.size(), " buffer values; this run's has ",
        parameters_.size(), " and ", buffers_.size())));
    return;
  }
  auto replace = [this, model = std::move(model), done = std::move(done)] {
    std::copy(model->parameters.begin(), model->parameters.end(),
              parameters_.begin());
    std::copy(model->buffers.begin(), model->buffers.end(), buffers_.begin());
    ++generation_;
    initialised_ = true;
    // What it knew was of another model.
    if (algorithm_) RestartAlgorithm(algorithm_->step());
    done(absl::OkStatus());
  };
  if (phase_ == Phase::kJoining) {
    EndJoin();
    replace();
    if (!algorithm_) RestartAlgorithm(0);
    BeginTraining("started from the imported model");
    return;
  }
  if (at_boundary_) {
    replace();
  } else {
    at_boundary_do_.push_back(std::move(replace));
  }
}

// -------------------------------------------------------------------- plan ----

absl::Status Node::SetPlan(core::DerivedPlan plan,
                           std::unique_ptr<ports::Trainer> trainer) {
  if (!trainer && !trainer_ && !(pending_ && pending_->trainer)) {
    return absl::FailedPreconditionError("the first plan needs a learner");
  }
  if (!trainer && pending_) trainer = std::move(pending_->trainer);
  pending_ = PendingPlan{std::move(plan.checked.plan), std::move(plan.node),
                         std::move(trainer)};
  if (Running()) {
    ScheduleBoundary();
  } else if (at_boundary_) {
    AdoptPending();
  }
  return absl::OkStatus();
}

void Node::AdoptPending() {
  if (!pending_) return;
  DoBoundaryWork();
  PendingPlan next = *std::move(pending_);
  pending_.reset();
  const bool new_run =
      next.trainer || !plan_ || plan_->run_id != next.plan->run_id;
  const bool new_algorithm =
      !algorithm_ || plan_->algorithm.name != next.plan->algorithm.name;
  const bool new_format =
      plan_ && !(plan_->codec.format == next.plan->codec.format);
  plan_ = std::move(next.plan);
  node_plan_ = std::move(next.node);
  for (auto& [peer, state] : peers_) Compare(state);
  mass_codec_.Set(plan_->codec.mass,
                  DeriveSeed(plan_->seed, options_.self.name()));
  graph_number_ = 0;

  spectral_gap_.reset();

  if (new_run) {
    EndJoin();
    StopAlgorithm();
    transfers_.Reset();
    ForgetPushes();
    parcels_.Enter(0);
    initialised_ = false;
    unconfirmed_start_ = false;
    gradients_ = 0;
    evaluation_.reset();
    evaluated_step_ = evaluated_rows_ = -1;
    evaluation_owed_ = false;
    progress_ = Progress();
    last_error_.clear();
    wanted_ = Phase::kIdle;
    if (next.trainer) InstallTrainer(std::move(next.trainer));
    SetPhase(Phase::kIdle, "a new run");
  } else if (algorithm_) {
    if (new_algorithm) {
      RestartAlgorithm(algorithm_->step());
    } else {
      Handle(core::PlanChanged{node_plan_});
    }
  }
  if (new_run || new_format) {
    for (auto& [peer, state] : peers_) state.sent.reset();
  }
  for (const NodeId& partner : parcels_.partners()) {
    if (IsMember(partner)) continue;
    EnterNextEpoch();  // what it held is gone with it
    break;
  }
  events_.Report(
      ports::PlanAdopted{plan_->version, algorithm_ ? algorithm_->step() : 0});
  TellState();
  for (auto& [peer, state] : peers_) RefreshActive(peer);
}

void Node::InstallTrainer(std::unique_ptr<ports::Trainer> trainer) {
  trainer_.reset();  // before its views go
  running_gradient_ = 0;
  compute_parameters_.clear();
  compute_buffers_.clear();
  const ports::ModelInfo& model = trainer->model();
  parameters_.assign(model.parameter_count, 0.0F);
  gradient_.assign(model.parameter_count, 0.0F);
  buffers_.assign(model.buffer_count, 0.0F);
  trainer_ = std::move(trainer);
  for (auto& [peer, state] : peers_) Compare(state);
  const absl::Status bound =
      trainer_->Bind(absl::MakeSpan(parameters_), absl::MakeSpan(gradient_),
                     absl::MakeSpan(buffers_));
  if (!bound.ok()) {
    last_error_ = std::string(bound.message());
    events_.Report(ports::LearnerFailed{0, bound});
  }
}

// The learner keeps the memory that it is bound to; the model moves out.
void Node::ComputeOnCopy() {
  if (computes_on_copy()) return;
  compute_parameters_ = parameters_;
  compute_buffers_ = buffers_;
  compute_parameters_.swap(parameters_);
  compute_buffers_.swap(buffers_);
}

void Node::CopyToLearner(absl::Span<const float> at) {
  if (!computes_on_copy()) return;
  if (at.empty()) at = parameters_;
  std::copy(at.begin(), at.end(), compute_parameters_.begin());
  std::copy(buffers_.begin(), buffers_.end(), compute_buffers_.begin());
}

void Node::CopyFromLearner() {
  if (!computes_on_copy()) return;
  std::copy(compute_parameters_.begin(), compute_parameters_.end(),
            parameters_.begin());
  std::copy(compute_buffers_.begin(), compute_buffers_.end(), buffers_.begin());
}

}  // namespace dfl::runtime
