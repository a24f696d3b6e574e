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
      run_(options_.self),
      peers_(run_, [&links](const NodeId& peer) { return links.IsUp(peer); }),
      transfers_(options_.transfers, loop, worker, links, *this),
      pushes_([this](Outgoing o) { transfers_.Send(std::move(o)); }),
      parcels_(
          loop, transfers_,
          [this](const NodeId& peer) { return MayGive(peer); },
          [this](core::Delivered delivered) {
            if (!algorithm_.get()) return;
            peers_.CountSent(delivered.to, 4 * algorithm_.get()->MassLength(
                                                   model_.parameter_count()));
            Handle(delivered);
          }),
      learner_(loop, model_, *this, options_.degraded_retry),
      algorithm_(loop, *this),
      boundary_(loop, [this] { OnBoundary(); }),
      joining_(options_.joining, loop, links, transfers_, asks_, peers_, run_,
               *this) {}

Node::~Node() = default;

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
  if (!run_.has_plan()) {
    return absl::FailedPreconditionError(
        "there is no run plan yet; apply one first: dflctl plan apply FILE");
  }
  if (model_.initialised()) {  // an imported model
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
  boundary_.Schedule();  // it may wait at one for a neighbour's model
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
  if (!model_.initialised()) {
    BeginJoin();
    return absl::OkStatus();
  }
  std::string why;
  if (StopRuleMet(&why)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the stop rule is met (", why,
        "); raise it in the plan first, e.g. dflctl set stop.steps=N"));
  }
  if (!algorithm_.get()) RestartAlgorithm(0);  // an imported model
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
      boundary_.Schedule();
      return absl::OkStatus();
    default:
      joining_.End();
      SetPhase(Phase::kStopped, "stopped by hand");
      return absl::OkStatus();
  }
}

void Node::CopyModel(std::function<void(absl::StatusOr<SnapshotPtr>)> done) {
  if (!model_.initialised()) {
    done(absl::FailedPreconditionError(
        "the node has no model yet; start or import one first"));
    return;
  }
  if (Settled()) {
    done(TakeSnapshot());
    return;
  }
  boundary_.PutOff([this, done = std::move(done)] { done(TakeSnapshot()); });
}

void Node::ReplaceModel(std::shared_ptr<const Snapshot> model,
                        std::function<void(absl::Status)> done) {
  if (!learner_.trainer()) {
    done(absl::FailedPreconditionError(
        "there is no run plan yet, so no model to replace; apply one first: "
        "dflctl plan apply FILE"));
    return;
  }
  if (model->parameters.size() != model_.parameters().size() ||
      model->buffers.size() != model_.buffers().size()) {
    done(absl::InvalidArgumentError(absl::StrCat(
        "the model has ", model->parameters.size(), " parameters and ",
        model->buffers.size(), " buffer values; this run's has ",
        model_.parameter_count(), " and ", model_.buffer_count())));
    return;
  }
  auto replace = [this, model = std::move(model), done = std::move(done)] {
    std::copy(model->parameters.begin(), model->parameters.end(),
              model_.parameters().begin());
    std::copy(model->buffers.begin(), model->buffers.end(),
              model_.buffers().begin());
    model_.Changed();
    model_.SetInitialised(true);
    // What it knew was of another model.
    if (algorithm_.get()) RestartAlgorithm(algorithm_.step());
    done(absl::OkStatus());
  };
  if (phase_ == Phase::kJoining) {
    joining_.End();
    replace();
    if (!algorithm_.get()) RestartAlgorithm(0);
    BeginTraining("started from the imported model");
    return;
  }
  if (boundary_.here()) {
    replace();
  } else {
    boundary_.PutOff(std::move(replace));
  }
}

// ----------------------------------------------------------------- joining ----

void Node::BeginJoin() {
  joining_.Begin();
  SetPhase(Phase::kJoining, "looking for a neighbour to start from");
  joining_.Continue();
}

void Node::OnNobodyToJoin() {
  joining_.End();
  const absl::Status made =
      learner_.Initialise(DeriveSeed(run_.plan().seed, "model"));
  if (!made.ok()) {
    last_error_ = std::string(made.message());
    events_.Report(ports::LearnerFailed{0, made});
    SetPhase(Phase::kStopped, last_error_);
    return;
  }
  model_.SetInitialised(true);
  model_.Changed();
  RestartAlgorithm(0);
  joining_.NoteStart(false);
  joining_.WaitForOthers(loop_.Now() + run_.plan().deadline.exchange);
  BeginTraining("started fresh");
}

void Node::BeginTraining(const std::string& reason) {
  wanted_ = Phase::kIdle;
  SetPhase(Phase::kTraining, reason);
  RefreshAll();
  boundary_.Schedule();
}

void Node::TakeState(const NodeId& from, int64_t step,
                     const codec::DecodedMessage& message) {
  const absl::Status copied = message.CopyDense(model_.parameters());
  if (!copied.ok()) {
    OnBadMessage(from, ports::RefuseReason::kBadMessage,
                 std::string(copied.message()));
    joining_.Failed(from);
    return;
  }
  std::copy(message.buffers().begin(), message.buffers().end(),
            model_.buffers().begin());
  joining_.Taken();
  model_.SetInitialised(true);
  model_.Changed();
  RestartAlgorithm(step);
  // The giver itself may have started fresh, alone.
  joining_.NoteStart(true);
  events_.Report(ports::StateTaken{from, step});
  BeginTraining(absl::StrCat("joined at step ", step, " of ", from.name()));
}

// -------------------------------------------------------------------- plan ----

absl::Status Node::SetPlan(core::DerivedPlan plan,
                           std::unique_ptr<ports::Trainer> trainer) {
  if (!trainer && !learner_.trainer() && !(pending_ && pending_->trainer)) {
    return absl::FailedPreconditionError("the first plan needs a learner");
  }
  if (!trainer && pending_) trainer = std::move(pending_->trainer);
  pending_ = PendingPlan{std::move(plan.checked.plan), std::move(plan.node),
                         std::move(trainer)};
  if (Running()) {
    boundary_.Schedule();
  } else if (boundary_.here()) {
    AdoptPending();
  }
  return absl::OkStatus();
}

void Node::AdoptPending() {
  if (!pending_) return;
  boundary_.DoWork();
  PendingPlan next = *std::move(pending_);
  pending_.reset();
  const core::RunPlan* before = run_.plan_or_null();
  const bool new_run =
      next.trainer || !before || before->run_id != next.plan->run_id;
  const bool new_algorithm =
      !algorithm_.get() || before->algorithm.name != next.plan->algorithm.name;
  const bool new_format =
      before && !(before->codec.format == next.plan->codec.format);
  run_.Adopt(std::move(next.plan), std::move(next.node));
  peers_.CompareAll();
  mass_codec_.Set(run_.plan().codec.mass,
                  DeriveSeed(run_.plan().seed, options_.self.name()));
  if (new_run) {
    BeginRun(std::move(next.trainer));
  } else if (algorithm_.get()) {
    if (new_algorithm) {
      RestartAlgorithm(algorithm_.step());
    } else {
      Handle(core::PlanChanged{run_.node()});
    }
  }
  if (new_run || new_format) pushes_.ForgetReferences();
  for (const NodeId& partner : parcels_.partners()) {
    if (run_.IsMember(partner)) continue;
    EnterNextEpoch();  // what it held is gone with it
    break;
  }
  events_.Report(ports::PlanAdopted{run_.plan().version, algorithm_.step()});
  TellState();
  RefreshAll();
}

void Node::BeginRun(std::unique_ptr<ports::Trainer> trainer) {
  joining_.End();
  StopAlgorithm();
  transfers_.Reset();
  pushes_.Forget();
  parcels_.Enter(0);
  model_.SetInitialised(false);
  joining_.ForgetStart();
  learner_.ForgetGradients();
  evaluations_ = Evaluations();
  progress_ = Progress();
  last_error_.clear();
  wanted_ = Phase::kIdle;
  if (trainer) InstallTrainer(std::move(trainer));
  SetPhase(Phase::kIdle, "a new run");
}

void Node::InstallTrainer(std::unique_ptr<ports::Trainer> trainer) {
  const absl::Status bound = learner_.Install(std::move(trainer));
  run_.SetFingerprint(learner_.trainer()->model().fingerprint);
  peers_.CompareAll();
  if (!bound.ok()) {
    last_error_ = std::string(bound.message());
    events_.Report(ports::LearnerFailed{0, bound});
  }
}

}  // namespace dfl::runtime
