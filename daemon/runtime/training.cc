#include "daemon/runtime/training.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/pace.h"
#include "daemon/data/batch_sampler.h"

namespace dfl::runtime {

using ports::Phase;

namespace {

// Between the rounds of a node that only mixes: where it has no neighbour
// nothing else holds it up.
constexpr absl::Duration kMixPace = absl::Milliseconds(10);

}  // namespace

Training::Training(OwnState& own, ports::Loop& loop, ports::EventSink& events,
                   absl::Duration degraded_retry)
    : own_(own),
      loop_(loop),
      events_(events),
      learner_(loop, own.model, *this, degraded_retry) {}

void Training::Install(std::unique_ptr<ports::Trainer> trainer) {
  const absl::Status bound = learner_.Install(std::move(trainer));
  own_.run.SetContract(learner_.trainer()->model().contract);
  if (!bound.ok()) Fail(bound);
}

void Training::Renew(std::unique_ptr<ports::Trainer> trainer) {
  const int64_t before = train_rows();
  const absl::Status renewed = learner_.Renew(std::move(trainer));
  if (!renewed.ok()) return Fail(renewed);
  if (own_.algorithm.get()) {
    own_.progress.epochs().Count(own_.algorithm.pace().steps, BatchesPerPass());
  }
  events_.Report(ports::DataNote{
      false,
      absl::StrCat(train_rows(), " rows taken up (", before, " before)")});
}

absl::Status Training::Initialise() {
  absl::Status made =
      learner_.Initialise(DeriveSeed(own_.run.plan().seed, "model"));
  if (!made.ok()) Fail(made);
  return made;
}

int64_t Training::BatchesPerPass() const {
  const int64_t rows = train_rows();
  if (rows <= 0) return 1;
  const int64_t least = learner_.trainer()->model().min_batch_rows;
  return data::BatchesPerPass(rows, std::max<int64_t>(1, BatchSize()),
                              std::clamp<int64_t>(least, 1, rows));
}

const std::string& Training::last_error() const {
  if (!training_error_.empty()) return training_error_;
  return prediction_error_.empty() ? evaluation_error_ : prediction_error_;
}

void Training::BeginRun() {
  learner_.ForgetGradients();
  training_error_.clear();
  prediction_error_.clear();
  evaluation_error_.clear();
  health_ = TrainingHealth();
  own_.diverged = false;
}

void Training::BeginTraining() {
  health_.TryAnew();
  divergence_.Begin(own_.model.parameters());
  checked_ = loop_.Now();
}

void Training::Fail(const absl::Status& status) {
  training_error_ = std::string(status.message());
  events_.Report(ports::LearnerFailed{own_.algorithm.pace().steps, status});
}

void Training::OnEvaluation(const absl::Status& status) {
  evaluation_error_ = std::string(status.message());
  if (status.ok()) return;
  events_.Report(ports::LearnerFailed{own_.algorithm.pace().steps, status});
}

void Training::OnLearnerFree() {
  // What waited for the learner.
  if (own_.boundary.here()) own_.boundary.Schedule();
}

void Training::Do(const core::ComputeGradient& action) {
  if (own_.phases.failing()) {  // the step only has to come to its end
    learner_.Decline();
  } else if (!own_.run.node().trains) {
    const absl::Span<float> gradient = own_.model.gradient();
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    learner_.Decline(kMixPace);
  } else {
    learner_.ComputeGradient(action);
  }
}

absl::Status Training::Judge(const ports::GradientResult& result) {
  const std::string wrong = divergence_.OnLoss(result.loss);
  return wrong.empty() ? absl::OkStatus() : absl::DataLossError(wrong);
}

void Training::OnGradient(absl::StatusOr<ports::GradientResult> result) {
  if (!result.ok()) {
    OnFailure(result.status());
    return;
  }
  if (!own_.diverged) training_error_.clear();
  health_.OnGradient();
  if (TimingSink* timing = own_.algorithm.timing()) {
    timing->OnGradient(learner_.took());
  }
  own_.progress.OnGradient(result->loss);
  if (Degraded()) own_.phases.Set(Phase::kTraining, "training works again");
  own_.algorithm.Handle(core::GradientReady{result->loss, result->rows});
}

void Training::OnFailure(const absl::Status& status) {
  const bool passed_over = absl::IsDataLoss(status) && health_.MayPassOver();
  health_.OnFailure(passed_over);
  if (training_error_ != status.message()) Fail(status);
  const absl::Span<float> gradient = own_.model.gradient();
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  if (!own_.phases.Running()) {  // paused meanwhile
    learner_.Decline();
    return;
  }
  if (const std::string failure = health_.Failure(); !failure.empty()) {
    EndAsFailed(absl::StrCat(failure, "; the last: ", status.message()));
    learner_.Decline();
    return;
  }
  if (passed_over) {
    learner_.PassOver();
    return;
  }
  own_.phases.Set(Phase::kDegraded, training_error_);
  learner_.Retreat();
}

void Training::EndAsFailed(const std::string& why) {
  const int64_t wanted = own_.run.plan().stop.steps;
  const core::Algorithm* algorithm = own_.algorithm.get();
  own_.phases.WantFailed(absl::StrCat(
      algorithm != nullptr ? algorithm->gradients() : 0,
      wanted > 0 ? absl::StrCat(" of ", wanted) : "", " steps: ", why));
}

void Training::OnStoodStill() {
  core::GradientReady ready;
  ready.none = true;
  own_.algorithm.Handle(ready);
}

void Training::CheckParameters() {
  const absl::Time now = loop_.Now();
  if (now - checked_ < absl::Seconds(1) || own_.phases.failing()) return;
  checked_ = now;
  const std::string wrong = divergence_.OnParameters(own_.model.parameters());
  if (wrong.empty()) return;
  own_.diverged = true;
  Fail(absl::DataLossError(wrong));
  EndAsFailed(wrong);
}

// Training goes on meanwhile, and degrades by itself.
void Training::OnPredicted(const absl::Status& status) {
  // Those of a degraded node fail with its gradients, which have their pauses.
  if (status.ok() || !Degraded()) health_.OnPrediction(status.ok());
  const bool told = prediction_error_ == status.message();
  prediction_error_ = std::string(status.message());
  if (status.ok()) return;
  if (!told) {
    events_.Report(ports::LearnerFailed{own_.algorithm.pace().steps, status});
  }
  const std::string failure = health_.Failure();
  if (failure.empty() || !own_.phases.Running()) return;
  EndAsFailed(absl::StrCat(failure, "; the last: ", status.message()));
}

void Training::OnPredictions(absl::StatusOr<ports::Predictions> result) {
  OnPredicted(result.status());
  core::Predicted event;
  if (result.ok()) {
    event.rows = result->rows;
    event.probabilities = std::move(result->probabilities);
  }
  own_.algorithm.Handle(std::move(event));
}

void Training::Do(const core::StepDone& /*action*/) {
  own_.model.Changed();
  own_.boundary.Reach();
  CheckParameters();
  const core::Pace pace = own_.algorithm.pace();
  own_.progress.OnStep(pace.steps, loop_.Now());
  own_.progress.epochs().Count(pace.steps, BatchesPerPass());
  events_.Report(
      ports::StepFinished{pace.steps, own_.progress.loss(), pace.rounds});
  own_.boundary.Schedule();
}

}  // namespace dfl::runtime
