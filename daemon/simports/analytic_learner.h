// Learners without LibTorch, for the simulator and the tests of the node.
// AnalyticLearner trains one of problems.h, FakeLearner trains nothing.
//
// Both are pure functions of what they were made from and the calls so far, so
// a simulated run can be repeated bit for bit.
#ifndef DFL_SIMPORTS_ANALYTIC_LEARNER_H_
#define DFL_SIMPORTS_ANALYTIC_LEARNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/data/batch_sampler.h"
#include "daemon/ports/learner.h"
#include "daemon/simports/problems.h"

namespace dfl::simports {

// What an AnalyticLearner evaluates on.
struct AnalyticTest {
  // The problem whose loss is reported. It has the same n as the trained one.
  // Null: no evaluation.
  std::shared_ptr<const Problem> problem;
  // 0: regression, no accuracy. Otherwise `labels` [rows] in [0, classes) and
  // `predict`, the class that parameters `w` give `row`.
  int64_t classes = 0;
  std::vector<int64_t> labels;
  std::function<int64_t(absl::Span<const float> w, int64_t row)> predict;
};

// The test of a softmax problem. It predicts the most probable class, and the
// lowest of equally probable ones.
AnalyticTest SoftmaxTest(std::shared_ptr<const Softmax> problem,
                         std::vector<int64_t> labels, int64_t classes);

struct AnalyticLearnerOptions {
  // Names the model; part of its contract.
  std::string kind = "analytic";
  // The seed of the order of mini-batches and test rows; it differs between
  // nodes.
  uint64_t seed = 1;
  // Initialise draws parameters from N(0, initial_stddev^2); 0: all zero.
  double initial_stddev = 0;
};

// Mini-batches are drawn without replacement, reshuffled each pass. Has no
// buffers. Thread-compatible.
class AnalyticLearner : public ports::Learner {
 public:
  AnalyticLearner(AnalyticLearnerOptions options,
                  std::shared_ptr<const Problem> train, AnalyticTest test = {});

  const ports::ModelInfo& model() const override { return model_; }
  const ports::DataInfo& data() const override { return data_; }

  // Errors: INVALID_ARGUMENT for other lengths than model() says.
  absl::Status Bind(absl::Span<float> parameters, absl::Span<float> gradient,
                    absl::Span<float> buffers) override;
  absl::Status Initialise(uint64_t seed) override;
  // Errors: DATA_LOSS when loss or gradient is not finite; then the gradient is
  // 0, and same_batch takes the next batch.
  absl::StatusOr<ports::GradientResult> Gradient(
      const ports::GradientRequest& request) override;
  // Errors: FAILED_PRECONDITION unless it trains the softmax problem;
  // INVALID_ARGUMENT for models of other lengths.
  absl::StatusOr<ports::Predictions> Predict(
      const ports::PredictRequest& request) override;
  // Errors: FAILED_PRECONDITION without a test problem.
  absl::StatusOr<ports::Evaluation> Evaluate(int64_t max_rows) override;
  std::optional<ports::BatchPosition> position() const override;
  absl::Status GoTo(const ports::BatchPosition& position) override;

 private:
  const AnalyticLearnerOptions options_;
  const std::shared_ptr<const Problem> train_;
  const Softmax* const softmax_;  // train_, when it is one
  const AnalyticTest test_;
  ports::ModelInfo model_;
  ports::DataInfo data_;
  data::BatchSampler sampler_;
  std::vector<int64_t> test_order_;
  bool batch_is_good_ = true;  // the last one gave a gradient
  absl::Span<float> parameters_;
  absl::Span<float> gradient_;
};

// A learner whose gradient is zero everywhere, so that only the exchange moves
// a model. Thread-compatible.
class FakeLearner : public ports::Learner {
 public:
  // `parameters` >= 1 and `buffers` >= 0 values; `kind` is part of the
  // contract.
  FakeLearner(int64_t parameters, int64_t buffers, std::string kind = "fake");

  const ports::ModelInfo& model() const override { return model_; }
  const ports::DataInfo& data() const override { return data_; }

  // Errors: INVALID_ARGUMENT for other lengths than model() says.
  absl::Status Bind(absl::Span<float> parameters, absl::Span<float> gradient,
                    absl::Span<float> buffers) override;
  // Standard normal values, parameters and buffers alike.
  absl::Status Initialise(uint64_t seed) override;
  // Errors: what FailWith was given; DATA_LOSS after MakeNotFinite(true).
  absl::StatusOr<ports::GradientResult> Gradient(
      const ports::GradientRequest& request) override;
  // Two classes, which every model finds equally likely. Errors: what FailWith
  // was given.
  absl::StatusOr<ports::Predictions> Predict(
      const ports::PredictRequest& request) override;
  // Loss and accuracy are 0. Errors: what FailWith was given.
  absl::StatusOr<ports::Evaluation> Evaluate(int64_t max_rows) override;

  // Every call from here on fails with `status`; OK ends that.
  void FailWith(absl::Status status) { failure_ = std::move(status); }
  // Gradients are not a number from here on, and are reported as such.
  void MakeNotFinite(bool value) { not_finite_ = value; }

 private:
  ports::ModelInfo model_;
  ports::DataInfo data_;
  absl::Span<float> parameters_;
  absl::Span<float> gradient_;
  absl::Span<float> buffers_;
  absl::Status failure_;
  bool not_finite_ = false;
};

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_ANALYTIC_LEARNER_H_
