#include "daemon/simports/sim_trainer.h"

#include <utility>

#include "daemon/base/check.h"

namespace dfl::simports {

SimTrainer::SimTrainer(ports::Loop& loop, ports::Learner& learner,
                       absl::Duration gradient_delay,
                       absl::Duration evaluate_delay)
    : SimTrainer(
          loop, learner,
          [gradient_delay](const ports::GradientRequest&) {
            return gradient_delay;
          },
          evaluate_delay) {}

SimTrainer::SimTrainer(ports::Loop& loop, ports::Learner& learner,
                       GradientDelay gradient_delay,
                       absl::Duration evaluate_delay)
    : loop_(loop),
      learner_(learner),
      gradient_delay_(std::move(gradient_delay)),
      evaluate_delay_(evaluate_delay) {}

SimTrainer::SimTrainer(ports::Loop& loop,
                       std::unique_ptr<ports::Learner> learner,
                       GradientDelay gradient_delay,
                       absl::Duration evaluate_delay)
    : loop_(loop),
      owned_(std::move(learner)),
      learner_(*owned_),
      gradient_delay_(std::move(gradient_delay)),
      evaluate_delay_(evaluate_delay) {}

SimTrainer::~SimTrainer() {
  if (timer_ != 0) loop_.Cancel(timer_);
}

absl::Status SimTrainer::Bind(absl::Span<float> parameters,
                              absl::Span<float> gradient,
                              absl::Span<float> buffers) {
  DFL_CHECK(timer_ == 0);
  return learner_.Bind(parameters, gradient, buffers);
}

absl::Status SimTrainer::Initialise(uint64_t seed) {
  DFL_CHECK(timer_ == 0);
  if (!failure_.ok()) return failure_;
  return learner_.Initialise(seed);
}

template <typename Finish>
void SimTrainer::Start(absl::Duration delay, Finish finish) {
  DFL_CHECK(timer_ == 0);  // one call at a time
  timer_ = loop_.After(delay, [this, finish = std::move(finish)] {
    timer_ = 0;
    finish();
  });
}

void SimTrainer::Gradient(
    const ports::GradientRequest& request,
    std::function<void(absl::StatusOr<ports::GradientResult>)> done) {
  Start(gradient_delay_(request), [this, request, done = std::move(done)] {
    done(failure_.ok() ? learner_.Gradient(request)
                       : absl::StatusOr<ports::GradientResult>(failure_));
  });
}

void SimTrainer::Predict(
    const ports::PredictRequest& request,
    std::function<void(absl::StatusOr<ports::Predictions>)> done) {
  Start(evaluate_delay_, [this, request, done = std::move(done)] {
    done(failure_.ok() ? learner_.Predict(request)
                       : absl::StatusOr<ports::Predictions>(failure_));
  });
}

void SimTrainer::Evaluate(
    int64_t max_rows,
    std::function<void(absl::StatusOr<ports::Evaluation>)> done) {
  Start(evaluate_delay_, [this, max_rows, done = std::move(done)] {
    done(failure_.ok() ? learner_.Evaluate(max_rows)
                       : absl::StatusOr<ports::Evaluation>(failure_));
  });
}

}  // namespace dfl::simports
