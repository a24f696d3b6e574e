#include "daemon/runtime/training.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "daemon/base/rng.h"

namespace dfl::runtime {

using ports::Phase;

Training::Training(OwnState& own, ports::Loop& loop, ports::EventSink& events,
                   absl::Duration degraded_retry)
    : own_(own),
      loop_(loop),
      events_(events),
      learner_(loop, own.model, *this, degraded_retry) {}

void Training::Install(std::unique_ptr<ports::Trainer> trainer) {
  const absl::Status bound = learner_.Install(std::move(trainer));
  own_.run.SetFingerprint(learner_.trainer()->model().fingerprint);
  if (!bound.ok()) Fail(bound);
}

absl::Status Training::Initialise() {
  absl::Status made =
      learner_.Initialise(DeriveSeed(own_.run.plan().seed, "model"));
  if (!made.ok()) Fail(made);
  return made;
}

void Training::BeginRun() {
  learner_.ForgetGradients();
  last_error_.clear();
}

void Training::Fail(const absl::Status& status) {
  last_error_ = std::string(status.message());
  events_.Report(ports::LearnerFailed{own_.algorithm.step(), status});
}

void Training::OnLearnerFree() {
  // What waited for the learner.
  if (own_.boundary.here()) own_.boundary.Schedule();
}

void Training::OnGradient(absl::StatusOr<ports::GradientResult> result) {
  if (result.ok()) {
    own_.progress.OnGradient(result->loss);
    if (Degraded()) {
      last_error_.clear();
      own_.phases.Set(Phase::kTraining, "training works again");
    }
    own_.algorithm.Handle(core::GradientReady{result->loss, result->rows});
    return;
  }
  if (last_error_ != result.status().message()) Fail(result.status());
  const absl::Span<float> gradient = own_.model.gradient();
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  if (!own_.phases.Running()) {  // paused meanwhile
    own_.algorithm.Handle(core::GradientReady{});
    return;
  }
  own_.phases.Set(Phase::kDegraded, last_error_);
  learner_.Retreat();
}

void Training::OnStoodStill() { own_.algorithm.Handle(core::GradientReady{}); }

// Predictions that failed are reported; training goes on, and degrades by
// itself.
void Training::OnPredictions(absl::StatusOr<ports::Predictions> result) {
  core::Predicted event;
  if (result.ok()) {
    event.rows = result->rows;
    event.probabilities = std::move(result->probabilities);
  } else {
    Fail(result.status());
  }
  own_.algorithm.Handle(std::move(event));
}

void Training::Do(const core::StepDone& /*action*/) {
  own_.model.Changed();
  own_.boundary.Reach();
  own_.progress.OnStep(own_.algorithm.step(), loop_.Now());
  events_.Report(
      ports::StepFinished{own_.algorithm.step(), own_.progress.loss()});
  own_.boundary.Schedule();
}

}  // namespace dfl::runtime
