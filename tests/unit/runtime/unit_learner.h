// A learner whose gradient is 1 everywhere and that keeps what it was asked.
#ifndef DFL_TESTS_UNIT_RUNTIME_UNIT_LEARNER_H_
#define DFL_TESTS_UNIT_RUNTIME_UNIT_LEARNER_H_

#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/learner.h"
#include "daemon/simports/analytic_learner.h"

namespace dfl::runtime {

// 10 parameters; 2 buffers that count gradients.
class UnitLearner : public simports::FakeLearner {
 public:
  UnitLearner() : simports::FakeLearner(10, 2, "unit") {}
  absl::Status Bind(absl::Span<float> parameters, absl::Span<float> gradient,
                    absl::Span<float> buffers) override {
    parameters_ = parameters;
    gradient_ = gradient;
    buffers_ = buffers;
    return simports::FakeLearner::Bind(parameters, gradient, buffers);
  }
  absl::StatusOr<ports::GradientResult> Gradient(
      const ports::GradientRequest& request) override {
    requests.push_back(request);
    models.emplace_back(parameters_.begin(), parameters_.end());
    auto result = simports::FakeLearner::Gradient(request);
    for (float& value : gradient_) value = 1;
    for (float& value : buffers_) value += 1;
    return result;
  }

  std::vector<ports::GradientRequest> requests;
  // The parameters at which each gradient was taken.
  std::vector<std::vector<float>> models;

 private:
  absl::Span<float> parameters_;
  absl::Span<float> gradient_;
  absl::Span<float> buffers_;
};

// Parameters and buffers that every node of `plan` starts from. `learner` is
// not a node's.
inline std::pair<std::vector<float>, std::vector<float>> InitialModel(
    ports::Learner& learner, const core::RunPlan& plan) {
  std::vector<float> parameters(learner.model().parameter_count);
  std::vector<float> gradient(parameters.size());
  std::vector<float> buffers(learner.model().buffer_count);
  DFL_CHECK(learner
                .Bind(absl::MakeSpan(parameters), absl::MakeSpan(gradient),
                      absl::MakeSpan(buffers))
                .ok());
  DFL_CHECK(learner.Initialise(DeriveSeed(plan.seed, "model")).ok());
  return {std::move(parameters), std::move(buffers)};
}

}  // namespace dfl::runtime

#endif  // DFL_TESTS_UNIT_RUNTIME_UNIT_LEARNER_H_
