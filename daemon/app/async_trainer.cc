#include "daemon/app/async_trainer.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "daemon/base/status_macros.h"

namespace dfl::app {

AsyncTrainer::AsyncTrainer(ports::Loop& loop,
                           std::unique_ptr<ports::Learner> learner,
                           TrainerPace pace)
    : loop_(loop),
      share_(pace.share),
      learner_(std::move(learner)),
      reached_(std::make_shared<std::optional<ports::BatchPosition>>(
          learner_->position())),
      thread_(loop, "dfld-train", {.niceness = pace.niceness}) {}

AsyncTrainer::~AsyncTrainer() {
  loop_.Cancel(waiting_);
  thread_.Stop();
}

absl::Status AsyncTrainer::Bind(absl::Span<float> parameters,
                                absl::Span<float> gradient,
                                absl::Span<float> buffers) {
  return learner_->Bind(parameters, gradient, buffers);
}

absl::Status AsyncTrainer::Initialise(uint64_t seed) {
  return learner_->Initialise(seed);
}

absl::Status AsyncTrainer::GoTo(const ports::BatchPosition& position) {
  DFL_RETURN_IF_ERROR(learner_->GoTo(position));
  *reached_ = position;
  return absl::OkStatus();
}

void AsyncTrainer::Gradient(
    const ports::GradientRequest& request,
    std::function<void(absl::StatusOr<ports::GradientResult>)> done) {
  const absl::Duration wait = *rested_ - loop_.Now();
  if (wait <= absl::ZeroDuration()) {
    BeginGradient(request, std::move(done));
    return;
  }
  waiting_ = loop_.After(wait, [this, request, done = std::move(done)] {
    BeginGradient(request, done);
  });
}

void AsyncTrainer::BeginGradient(
    const ports::GradientRequest& request,
    std::function<void(absl::StatusOr<ports::GradientResult>)> done) {
  auto result = std::make_shared<absl::StatusOr<ports::GradientResult>>();
  auto position = std::make_shared<std::optional<ports::BatchPosition>>();
  batch_size_ = request.batch_size;
  RunWatched(
      /*steps=*/1, /*is_gradient=*/true,
      [this, request, result, position] {
        *result = learner_->Gradient(request);
        *position = learner_->position();
      },
      [reached = reached_, rested = rested_, loop = &loop_, share = share_,
       began = loop_.Now(), result, position, done = std::move(done)] {
        *reached = *position;
        const absl::Time now = loop->Now();
        *rested = now + (now - began) * (1 / share - 1);
        done(std::move(*result));
      });
}

void AsyncTrainer::Predict(
    const ports::PredictRequest& request,
    std::function<void(absl::StatusOr<ports::Predictions>)> done) {
  auto result = std::make_shared<absl::StatusOr<ports::Predictions>>();
  auto position = std::make_shared<std::optional<ports::BatchPosition>>();
  const auto models = static_cast<double>(1 + request.models->size());
  RunWatched(
      models, /*is_gradient=*/false,
      [this, request, result, position] {
        *result = learner_->Predict(request);
        *position = learner_->position();
      },
      [reached = reached_, result, position, done = std::move(done)] {
        *reached = *position;
        done(std::move(*result));
      });
}

void AsyncTrainer::Evaluate(
    int64_t max_rows,
    std::function<void(absl::StatusOr<ports::Evaluation>)> done) {
  auto result = std::make_shared<absl::StatusOr<ports::Evaluation>>();
  const int64_t rows =
      max_rows > 0 ? std::min(max_rows, data().test_rows) : data().test_rows;
  RunWatched(
      static_cast<double>(rows) / static_cast<double>(batch_size_),
      /*is_gradient=*/false,
      [this, max_rows, result] { *result = learner_->Evaluate(max_rows); },
      [result, done = std::move(done)] { done(std::move(*result)); });
}

void AsyncTrainer::RunWithLearner(std::function<void(ports::Learner&)> work,
                                  std::function<void()> done) {
  RunWatched(
      /*steps=*/1, /*is_gradient=*/false,
      [this, work = std::move(work)] { work(*learner_); }, std::move(done));
}

void AsyncTrainer::RunWatched(double steps, bool is_gradient,
                              std::function<void()> work,
                              std::function<void()> done) {
  watch_->Begin(loop_.Now(), steps);
  thread_.Run(std::move(work), [loop = &loop_, watch = watch_, is_gradient,
                                done = std::move(done)] {
    watch->End(loop->Now(), is_gradient);
    done();
  });
}

}  // namespace dfl::app
