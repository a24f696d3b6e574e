// What tests of learners share, with LibTorch or without: small data sets, and
// a learner with its flat buffers.
#ifndef DFL_TESTS_UNIT_PLAIN_ROWS_H_
#define DFL_TESTS_UNIT_PLAIN_ROWS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/distributions.h"
#include "daemon/base/rng.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/data/dataset.h"
#include "daemon/ports/learner.h"
#include "gtest/gtest.h"

namespace dfl::learner {

// Normal features whose class (or target) a linear model can find.
inline data::DatasetView RandomRows(std::vector<int64_t> shape, int64_t rows,
                                    int64_t classes, uint64_t seed) {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  Rng rng(seed);
  std::vector<float> features(static_cast<size_t>(rows * size));
  for (float& value : features) value = static_cast<float>(Normal(rng));
  data::Dataset::Answers answers;
  answers.classes = classes;
  for (int64_t i = 0; i < rows; ++i) {
    const float first = features[static_cast<size_t>(i * size)];
    if (classes == 0) {
      answers.targets.push_back(2 * first + 1);
    } else {
      // Every class occurs, the sign of the first feature decides the half.
      const int64_t k = i % classes;
      answers.labels.push_back(k);
      features[static_cast<size_t>(i * size + k % size)] += 2;
    }
  }
  return data::DatasetView(std::make_shared<const data::Dataset>(
      std::move(shape), std::move(features), std::move(answers)));
}

// A learner and the flat buffers it is bound to.
struct BoundLearner {
  // Binds `learner` and initialises it.
  static absl::StatusOr<std::unique_ptr<BoundLearner>> Of(
      std::unique_ptr<ports::Learner> learner, uint64_t seed) {
    auto bound = std::make_unique<BoundLearner>();
    bound->learner = std::move(learner);
    const ports::ModelInfo& info = bound->learner->model();
    bound->parameters.resize(static_cast<size_t>(info.parameter_count));
    bound->gradient.resize(static_cast<size_t>(info.parameter_count));
    bound->buffers.resize(static_cast<size_t>(info.buffer_count));
    absl::Status status = bound->learner->Bind(
        absl::MakeSpan(bound->parameters), absl::MakeSpan(bound->gradient),
        absl::MakeSpan(bound->buffers));
    if (status.ok()) status = bound->learner->Initialise(seed);
    if (!status.ok()) return status;
    return bound;
  }

  FlatVector parameters;
  FlatVector gradient;
  FlatVector buffers;
  std::unique_ptr<ports::Learner> learner;

  // parameters -= step_size * gradient of the next mini-batch, `steps` times.
  // Returns the last loss.
  double Train(int64_t steps, int64_t batch_size, float step_size) {
    double loss = 0;
    for (int64_t step = 0; step < steps; ++step) {
      ports::GradientRequest request;
      request.step = step;
      request.batch_size = batch_size;
      const auto result = learner->Gradient(request);
      EXPECT_TRUE(result.ok()) << result.status();
      if (!result.ok()) return loss;
      loss = result->loss;
      for (size_t i = 0; i < parameters.size(); ++i) {
        parameters[i] -= step_size * gradient[i];
      }
    }
    return loss;
  }
};

inline core::ModelSpec Spec(const std::string& kind, int64_t classes) {
  core::ModelSpec spec;
  spec.kind = kind;
  spec.classes = classes;
  return spec;
}

}  // namespace dfl::learner

#endif  // DFL_TESTS_UNIT_PLAIN_ROWS_H_
