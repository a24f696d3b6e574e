#include "daemon/runtime/learner_driver.h"

#include <algorithm>
#include <utility>

#include "daemon/base/status_macros.h"

namespace dfl::runtime {

absl::Status LearnerDriver::Install(std::unique_ptr<ports::Trainer> trainer) {
  trainer_.reset();  // before its views go
  running_ = 0;
  compute_parameters_.clear();
  compute_buffers_.clear();
  copied_buffers_.clear();
  const ports::ModelInfo& info = trainer->model();
  model_.Resize(info.parameter_count, info.buffer_count);
  trainer_ = std::move(trainer);
  bound_ =
      trainer_->Bind(model_.parameters(), model_.gradient(), model_.buffers());
  return bound_;
}

absl::Status LearnerDriver::Renew(std::unique_ptr<ports::Trainer> trainer) {
  const bool copies = computes_on_copy();
  DFL_RETURN_IF_ERROR(trainer->Bind(
      copies ? absl::MakeSpan(compute_parameters_) : model_.parameters(),
      model_.gradient(),
      copies ? absl::MakeSpan(compute_buffers_) : model_.buffers()));
  const std::optional<ports::BatchPosition> before = trainer_->position();
  std::optional<ports::BatchPosition> next = trainer->position();
  if (before && next) {
    const int64_t rows = next->rows;
    next = before;
    if (rows != before->rows) {
      next->rows = rows;
      next->pass += before->row > 0 ? 1 : 0;
      next->row = 0;
    }
    DFL_RETURN_IF_ERROR(trainer->GoTo(*next));
  }
  trainer_ = std::move(trainer);
  bound_ = absl::OkStatus();
  return absl::OkStatus();
}

absl::Status LearnerDriver::Initialise(uint64_t seed) {
  DFL_RETURN_IF_ERROR(bound_);
  absl::Status made = trainer_->Initialise(seed);
  if (!made.ok() || !computes_on_copy()) return made;
  std::copy(compute_parameters_.begin(), compute_parameters_.end(),
            model_.parameters().begin());
  std::copy(compute_buffers_.begin(), compute_buffers_.end(),
            model_.buffers().begin());
  return made;
}

// The learner keeps the memory that it is bound to; the model moves out.
void LearnerDriver::ComputeOnCopy() {
  if (computes_on_copy()) return;
  compute_parameters_.assign(model_.parameters().begin(),
                             model_.parameters().end());
  compute_buffers_.assign(model_.buffers().begin(), model_.buffers().end());
  model_.Swap(compute_parameters_, compute_buffers_);
}

void LearnerDriver::CopyToLearner(absl::Span<const float> at) {
  if (!computes_on_copy()) return;
  if (at.empty()) at = model_.parameters();
  std::copy(at.begin(), at.end(), compute_parameters_.begin());
  std::copy(model_.buffers().begin(), model_.buffers().end(),
            compute_buffers_.begin());
}

absl::Status LearnerDriver::GoTo(
    int64_t gradients, const std::optional<ports::BatchPosition>& position) {
  gradients_ = gradients;
  return position ? trainer_->GoTo(*position) : absl::OkStatus();
}

void LearnerDriver::DropWaiting() {
  next_gradient_.reset();
  next_prediction_.reset();
}

bool LearnerDriver::Ended(uint64_t call, uint64_t epoch) {
  if (call != running_) return false;  // of a trainer that is gone
  running_ = 0;
  listener_.OnLearnerFree();
  if (epoch == epoch_) return true;
  if (next_gradient_) {
    ComputeGradient(*std::exchange(next_gradient_, std::nullopt));
  }
  if (next_prediction_) Predict(*std::exchange(next_prediction_, std::nullopt));
  return false;
}

void LearnerDriver::ComputeGradient(const core::ComputeGradient& action) {
  if (busy()) {
    next_gradient_ = action;
    return;
  }
  wanted_ = action;
  if (listener_.Degraded() && loop_.Now() < retry_at_) {
    StandStill();
    return;
  }
  began_ = loop_.Now();
  ports::GradientRequest request;
  // Batches that nothing came of (degraded) are not counted.
  request.same_batch = action.same_batch && gradients_ > 0;
  request.step = request.same_batch ? gradients_ - 1 : gradients_;
  request.batch_size = listener_.BatchSize();
  CopyToLearner(action.at ? absl::MakeConstSpan(*action.at)
                          : absl::Span<const float>());
  if (computes_on_copy()) {
    copied_buffers_ = compute_buffers_;
  } else {
    copied_buffers_.assign(model_.buffers().begin(), model_.buffers().end());
  }
  running_ = ++last_call_;
  if (!bound_.ok()) {
    Later([this, call = running_, epoch = epoch_] {
      OnGradient(call, epoch, bound_);
    });
    return;
  }
  trainer_->Gradient(request,
                     [this, call = running_, epoch = epoch_,
                      alive = std::weak_ptr<bool>(alive_)](
                         absl::StatusOr<ports::GradientResult> result) {
                       if (!alive.expired())
                         OnGradient(call, epoch, std::move(result));
                     });
}

void LearnerDriver::OnGradient(uint64_t call, uint64_t epoch,
                               absl::StatusOr<ports::GradientResult> result) {
  if (!Ended(call, epoch)) return;
  if (result.ok()) {
    const absl::Status judged = listener_.Judge(*result);
    if (!judged.ok()) result = judged;
  }
  if (result.ok()) {
    MergeBuffers();
    ++gradients_;
    took_ = loop_.Now() - began_;
  } else {
    Undo();
  }
  listener_.OnGradient(std::move(result));
}

void LearnerDriver::MergeBuffers() {
  const absl::Span<float> buffers = model_.buffers();
  if (!computes_on_copy()) return;
  for (size_t l = 0; l < compute_buffers_.size(); ++l) {
    buffers[l] = buffers[l] == copied_buffers_[l]
                     ? compute_buffers_[l]
                     : buffers[l] + (compute_buffers_[l] - copied_buffers_[l]);
  }
}

void LearnerDriver::Later(std::function<void()> work) {
  loop_.Post([work = std::move(work), alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) work();
  });
}

void LearnerDriver::Retreat() {
  retry_at_ = loop_.Now() + degraded_retry_;
  StandStill();
}

void LearnerDriver::Undo() {
  if (computes_on_copy()) return;  // the model's were not touched
  std::copy(copied_buffers_.begin(), copied_buffers_.end(),
            model_.buffers().begin());
}

void LearnerDriver::PassOver() {
  core::ComputeGradient next = wanted_;
  next.same_batch = false;
  ComputeGradient(next);
}

void LearnerDriver::Decline(absl::Duration pause) {
  auto stand_still = [this, epoch = epoch_,
                      alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired() && epoch == epoch_) listener_.OnStoodStill();
  };
  if (pause > absl::ZeroDuration()) {
    loop_.After(pause, std::move(stand_still));
  } else {
    loop_.Post(std::move(stand_still));
  }
}

void LearnerDriver::StandStill() {
  const absl::Duration pace =
      std::min(std::max(took_, absl::Milliseconds(1)), degraded_retry_);
  loop_.After(pace,
              [this, epoch = epoch_, alive = std::weak_ptr<bool>(alive_)] {
                if (alive.expired() || epoch != epoch_) return;
                listener_.OnStoodStill();
              });
}

void LearnerDriver::Predict(const core::Predict& action) {
  if (busy()) {
    next_prediction_ = action;
    return;
  }
  ports::PredictRequest request;
  request.batch_size = listener_.BatchSize();
  request.models = action.models;
  CopyToLearner();
  running_ = ++last_call_;
  if (!bound_.ok()) {
    Later([this, call = running_, epoch = epoch_] {
      OnPredictions(call, epoch, bound_);
    });
    return;
  }
  trainer_->Predict(request, [this, call = running_, epoch = epoch_,
                              alive = std::weak_ptr<bool>(alive_)](
                                 absl::StatusOr<ports::Predictions> result) {
    if (!alive.expired()) OnPredictions(call, epoch, std::move(result));
  });
}

void LearnerDriver::OnPredictions(uint64_t call, uint64_t epoch,
                                  absl::StatusOr<ports::Predictions> result) {
  if (Ended(call, epoch)) listener_.OnPredictions(std::move(result));
}

void LearnerDriver::Evaluate(
    int64_t rows, std::function<void(absl::StatusOr<ports::Evaluation>)> done) {
  if (!bound_.ok()) {
    Later([this, done = std::move(done)] { done(bound_); });
    return;
  }
  CopyToLearner();
  trainer_->Evaluate(
      rows, [done = std::move(done), alive = std::weak_ptr<bool>(alive_)](
                absl::StatusOr<ports::Evaluation> result) {
        if (!alive.expired()) done(std::move(result));
      });
}

}  // namespace dfl::runtime
