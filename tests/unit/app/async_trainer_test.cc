#include "daemon/app/async_trainer.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

// A loop whose time the test sets.
class HandLoop final : public ports::Loop {
 public:
  absl::Time Now() const override {
    const absl::MutexLock lock(&mutex_);
    return now_;
  }
  void Pass(absl::Duration time) {
    const absl::MutexLock lock(&mutex_);
    now_ += time;
  }
  void Post(std::function<void()> task) override {
    const absl::MutexLock lock(&mutex_);
    posted_.push_back(std::move(task));
  }
  ports::TimerId After(absl::Duration delay,
                       std::function<void()> task) override {
    delays.push_back(delay);
    timer = std::move(task);
    return delays.size();
  }
  void Cancel(ports::TimerId /*timer*/) override {}

  // Waits for something to be posted, and runs it.
  void RunOne() {
    std::function<void()> task;
    {
      const absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](std::vector<std::function<void()>>* posted) {
            return !posted->empty();
          },
          &posted_));
      task = std::move(posted_.front());
      posted_.erase(posted_.begin());
    }
    task();
  }

  std::vector<absl::Duration> delays;  // of timers, in order
  std::function<void()> timer;         // the last one

 private:
  mutable absl::Mutex mutex_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<std::function<void()>> posted_;
};

// Each gradient takes 100 ms.
class SlowLearner final : public ports::Learner {
 public:
  explicit SlowLearner(HandLoop& loop) : loop_(loop) {}
  const ports::ModelInfo& model() const override { return model_; }
  const ports::DataInfo& data() const override { return data_; }
  absl::Status Bind(absl::Span<float>, absl::Span<float>,
                    absl::Span<float>) override {
    return absl::OkStatus();
  }
  absl::Status Initialise(uint64_t) override { return absl::OkStatus(); }
  absl::StatusOr<ports::GradientResult> Gradient(
      const ports::GradientRequest& request) override {
    loop_.Pass(absl::Milliseconds(100));
    return ports::GradientResult{1.0, request.batch_size};
  }
  absl::StatusOr<ports::Predictions> Predict(
      const ports::PredictRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<ports::Evaluation> Evaluate(int64_t) override {
    return absl::UnimplementedError("");
  }

 private:
  HandLoop& loop_;
  const ports::ModelInfo model_;
  const ports::DataInfo data_;
};

class Trained {
 public:
  explicit Trained(double share)
      : trainer_(loop, std::make_unique<SlowLearner>(loop),
                 TrainerPace{0, share}) {}

  void Begin() {
    trainer_.Gradient({}, [this](const auto& /*result*/) { ++done; });
  }

  HandLoop loop;
  int done = 0;

 private:
  AsyncTrainer trainer_;
};

TEST(AsyncTrainer, TakesAllOfTheTimeUnlessItIsTold) {
  Trained trained(1);
  for (int i = 0; i < 3; ++i) {
    trained.Begin();
    trained.loop.RunOne();
  }
  EXPECT_EQ(trained.done, 3);
  EXPECT_TRUE(trained.loop.delays.empty());
}

TEST(AsyncTrainer, RestsForItsShareOfTheTime) {
  Trained trained(0.25);
  trained.Begin();
  trained.loop.RunOne();
  EXPECT_EQ(trained.done, 1);
  // 100 ms of 400.
  trained.Begin();
  ASSERT_EQ(trained.loop.delays.size(), 1u);
  EXPECT_EQ(trained.loop.delays[0], absl::Milliseconds(300));
  trained.loop.Pass(absl::Milliseconds(300));
  trained.loop.timer();
  trained.loop.RunOne();
  EXPECT_EQ(trained.done, 2);
  // Time in which the node waited for others was rest too.
  trained.loop.Pass(absl::Milliseconds(200));
  trained.Begin();
  ASSERT_EQ(trained.loop.delays.size(), 2u);
  EXPECT_EQ(trained.loop.delays[1], absl::Milliseconds(100));
}

}  // namespace
}  // namespace dfl::app
