#include "daemon/simports/sim_trainer.h"

#include <memory>
#include <vector>

#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_scheduler.h"
#include "gtest/gtest.h"

namespace dfl::simports {
namespace {

// Counts its calls.
class FakeLearner final : public ports::Learner {
 public:
  const ports::ModelInfo& model() const override { return model_; }
  const ports::DataInfo& data() const override { return data_; }
  absl::Status Bind(absl::Span<float>, absl::Span<float>,
                    absl::Span<float>) override {
    return absl::OkStatus();
  }
  absl::Status Initialise(uint64_t) override { return absl::OkStatus(); }
  absl::StatusOr<ports::GradientResult> Gradient(
      const ports::GradientRequest& request) override {
    ++gradients;
    return ports::GradientResult{0.5, request.batch_size};
  }
  absl::StatusOr<ports::Predictions> Predict(
      const ports::PredictRequest& request) override {
    return ports::Predictions{request.batch_size, {}};
  }
  absl::StatusOr<ports::Evaluation> Evaluate(int64_t max_rows) override {
    ports::Evaluation evaluation;
    evaluation.rows = max_rows;
    return evaluation;
  }
  int gradients = 0;

 private:
  ports::ModelInfo model_;
  ports::DataInfo data_;
};

TEST(SimTrainer, AnswersAfterItsDelayOnTheLoop) {
  SimScheduler scheduler;
  SimLoop loop(scheduler);
  FakeLearner learner;
  SimTrainer trainer(
      loop, learner,
      [](const ports::GradientRequest& request) {
        return absl::Milliseconds(request.batch_size);
      },
      absl::Seconds(2));
  std::vector<int64_t> rows;
  trainer.Gradient({0, 32}, [&](absl::StatusOr<ports::GradientResult> r) {
    rows.push_back(r->rows);
    // The next call may start from inside `done`.
    trainer.Evaluate(7, [&](absl::StatusOr<ports::Evaluation> e) {
      rows.push_back(e->rows);
    });
  });
  EXPECT_EQ(learner.gradients, 0);
  scheduler.RunUntilIdle();
  EXPECT_EQ(rows, (std::vector<int64_t>{32, 7}));
  EXPECT_EQ(scheduler.Now() - absl::UnixEpoch(), absl::Milliseconds(2032));
}

TEST(SimTrainer, FailsOnDemand) {
  SimScheduler scheduler;
  SimLoop loop(scheduler);
  FakeLearner learner;
  SimTrainer trainer(loop, learner, absl::Milliseconds(1));
  trainer.FailWith(absl::DataLossError("loss is nan"));
  absl::StatusCode code = absl::StatusCode::kOk;
  trainer.Gradient({0, 32}, [&](absl::StatusOr<ports::GradientResult> r) {
    code = r.status().code();
  });
  scheduler.RunUntilIdle();
  EXPECT_EQ(code, absl::StatusCode::kDataLoss);
  EXPECT_EQ(learner.gradients, 0);
}

TEST(SimTrainer, ForgetsTheCallUnderWayWhenDestroyed) {
  SimScheduler scheduler;
  SimLoop loop(scheduler);
  FakeLearner learner;
  auto trainer =
      std::make_unique<SimTrainer>(loop, learner, absl::Milliseconds(1));
  trainer->Gradient({0, 32}, [](absl::StatusOr<ports::GradientResult>) {
    ADD_FAILURE() << "called after destruction";
  });
  trainer.reset();
  scheduler.RunUntilIdle();
  EXPECT_EQ(learner.gradients, 0);
}

}  // namespace
}  // namespace dfl::simports
