// The drivers of the learner and of the algorithm, each without a node.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "daemon/runtime/algorithm_driver.h"
#include "daemon/runtime/flat_model.h"
#include "daemon/runtime/learner_driver.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_scheduler.h"
#include "daemon/simports/sim_trainer.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/unit_learner.h"

namespace dfl::runtime {
namespace {

constexpr absl::Duration kGradient = absl::Milliseconds(10);
constexpr absl::Duration kRetry = absl::Seconds(1);

class LearnerDriverTest : public testing::Test, public LearnerDriver::Listener {
 protected:
  void SetUp() override { Install(); }
  void Install() {
    auto trainer =
        std::make_unique<simports::SimTrainer>(loop_, learner_, kGradient);
    trainer_ = trainer.get();
    ASSERT_TRUE(driver_.Install(std::move(trainer)).ok());
  }
  int64_t BatchSize() const override { return 8; }
  bool Degraded() const override { return degraded_; }
  void OnLearnerFree() override { ++free_; }
  absl::Status Judge(const ports::GradientResult&) override { return judged_; }
  void OnGradient(absl::StatusOr<ports::GradientResult> result) override {
    results_.push_back(result.status());
  }
  void OnStoodStill() override { stood_still_.push_back(scheduler_.Now()); }
  void OnPredictions(absl::StatusOr<ports::Predictions>) override {}

  simports::SimScheduler scheduler_;
  simports::SimLoop loop_{scheduler_};
  UnitLearner learner_;
  FlatModel model_;
  LearnerDriver driver_{loop_, model_, *this, kRetry};
  simports::SimTrainer* trainer_ = nullptr;
  bool degraded_ = false;
  absl::Status judged_;
  int free_ = 0;
  std::vector<absl::Status> results_;
  std::vector<absl::Time> stood_still_;
};

TEST_F(LearnerDriverTest, CountsMiniBatchesAndRepeatsOneWhenAsked) {
  core::ComputeGradient again;
  again.same_batch = true;
  for (const bool same : {false, false, true}) {
    driver_.ComputeGradient(same ? again : core::ComputeGradient());
    EXPECT_TRUE(driver_.busy());
    scheduler_.RunFor(absl::Seconds(1));
  }
  EXPECT_FALSE(driver_.busy());
  EXPECT_EQ(driver_.gradients(), 3);
  EXPECT_EQ(free_, 3);
  ASSERT_EQ(learner_.requests.size(), 3U);
  EXPECT_EQ(learner_.requests[0].step, 0);
  EXPECT_EQ(learner_.requests[1].step, 1);
  EXPECT_EQ(learner_.requests[2].step, 1);
  EXPECT_TRUE(learner_.requests[2].same_batch);
  EXPECT_EQ(learner_.requests[2].batch_size, 8);
}

TEST_F(LearnerDriverTest, WhatOutlivesItsEpochIsDroppedAndTheNextStarts) {
  driver_.ComputeGradient({});
  driver_.BeginEpoch();
  driver_.ComputeGradient({});
  scheduler_.RunFor(kGradient + absl::Milliseconds(1));
  EXPECT_TRUE(results_.empty());
  EXPECT_TRUE(driver_.busy());
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_EQ(results_.size(), 1U);
  EXPECT_EQ(driver_.gradients(), 1);
}

TEST_F(LearnerDriverTest, OnACopyTheModelMayMoveAndBuffersAreMerged) {
  driver_.ComputeOnCopy();
  model_.parameters()[0] = 3;
  model_.buffers()[0] = 7;
  driver_.ComputeGradient({});
  model_.parameters()[0] = 4;
  model_.buffers()[0] = 20;  // moved by others meanwhile
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_EQ(learner_.models.back()[0], 3);
  EXPECT_EQ(model_.parameters()[0], 4);
  EXPECT_EQ(model_.buffers()[0], 21);
  EXPECT_EQ(model_.buffers()[1], 1);
}

TEST_F(LearnerDriverTest, OneThatIsNotToBeUsedLeavesNothing) {
  driver_.ComputeOnCopy();
  model_.buffers()[0] = 7;
  judged_ = absl::DataLossError("wild");
  driver_.ComputeGradient({});
  scheduler_.RunFor(absl::Seconds(1));
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0], judged_);
  EXPECT_EQ(model_.buffers()[0], 7);
  EXPECT_EQ(driver_.gradients(), 0);
}

TEST_F(LearnerDriverTest, AFailureUndoesBuffersAndARetreatTriesAgainLater) {
  driver_.ComputeGradient({});
  scheduler_.RunFor(kGradient + absl::Milliseconds(1));
  model_.LeaveBoundary();
  trainer_->FailWith(absl::InternalError("broken"));
  driver_.ComputeGradient({});
  model_.buffers()[0] = 99;
  scheduler_.RunFor(kGradient + absl::Milliseconds(1));
  ASSERT_EQ(results_.size(), 2U);
  EXPECT_FALSE(results_.back().ok());
  EXPECT_EQ(model_.buffers()[0], 1);
  EXPECT_EQ(driver_.gradients(), 1);
  degraded_ = true;
  const absl::Time failed = scheduler_.Now();
  driver_.Retreat();
  scheduler_.RunFor(absl::Milliseconds(20));
  ASSERT_EQ(stood_still_.size(), 1U);
  EXPECT_EQ(stood_still_[0], failed + kGradient);  // at the pace it had
  driver_.ComputeGradient({});                     // within the pause
  EXPECT_FALSE(driver_.busy());
  scheduler_.RunFor(kRetry);
  EXPECT_EQ(stood_still_.size(), 2U);
  trainer_->FailWith(absl::OkStatus());
  driver_.ComputeGradient({});
  EXPECT_TRUE(driver_.busy());
}

TEST_F(LearnerDriverTest, ANewTrainerDropsTheCallOfTheOldOne) {
  driver_.ComputeGradient({});
  Install();
  EXPECT_FALSE(driver_.busy());
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_TRUE(results_.empty());
  EXPECT_EQ(model_.parameter_count(), 10);
  EXPECT_EQ(model_.buffer_count(), 2);
}

// An algorithm that does what a test says.
class Scripted : public core::Algorithm {
 public:
  using Script = std::function<void(const core::Event&, core::Actions&)>;
  explicit Scripted(Script script) : script_(std::move(script)) {}
  void Handle(core::Event event, core::Actions& actions) override {
    script_(event, actions);
  }
  int64_t step() const override { return 6; }
  bool parameters_settled() const override { return true; }
  std::map<std::string, double> Gauges() const override { return {}; }

 protected:
  void MoveTo(int64_t) override {}
  void VisitState(core::StateFields&) override {}

 private:
  const Script script_;
};

class AlgorithmDriverTest : public testing::Test, public Actor {
 protected:
  void Install(Scripted::Script script) {
    driver_.Install(std::make_unique<Scripted>(std::move(script)),
                    std::make_unique<core::SeededDecisions>(1));
  }
  void Note(std::string what) { done_.push_back(std::move(what)); }
  void Do(const core::ComputeGradient&) override {
    Note("gradient");
    driver_.Handle(core::GradientReady{});
  }
  void Do(const core::Predict&) override { Note("predict"); }
  void Do(const core::Ask&) override { Note("ask"); }
  void Do(const core::CancelAsk&) override { Note("cancel"); }
  void Do(const core::Answer&) override { Note("answer"); }
  void Do(const core::Push&) override { Note("push"); }
  void Do(const core::Give&) override { Note("give"); }
  void Do(const core::Skip&) override { Note("skip"); }
  void Do(const core::Missed&) override { Note("missed"); }
  void Do(const core::StepDone&) override { Note("done"); }
  void OnHandled() override { Note("handled"); }
  absl::Duration Patience(absl::Duration deadline) const override {
    return patience_ * deadline;
  }

  simports::SimScheduler scheduler_;
  simports::SimLoop loop_{scheduler_};
  AlgorithmDriver driver_{loop_, *this};
  std::vector<std::string> done_;
  int64_t patience_ = 1;
};

TEST_F(AlgorithmDriverTest, EventsThatComeUpMeanwhileWaitTheirTurn) {
  Install([](const core::Event& event, core::Actions& actions) {
    if (std::holds_alternative<core::StepBegins>(event)) {
      actions.Do(core::ComputeGradient{});  // its gradient is there at once
      actions.Do(core::Push{});
    } else if (std::holds_alternative<core::GradientReady>(event)) {
      actions.Do(core::StepDone{});
    }
  });
  driver_.Handle(core::StepBegins{});
  EXPECT_EQ(done_,
            (std::vector<std::string>{"gradient", "push", "done", "handled"}));
  EXPECT_FALSE(driver_.handling());
  EXPECT_EQ(driver_.step(), 6);
}

TEST_F(AlgorithmDriverTest, TimersFireOnceAndCanBeReplacedAndCancelled) {
  std::vector<uint64_t> fired;
  Install([&fired](const core::Event& event, core::Actions& actions) {
    if (const auto* timer = std::get_if<core::TimerFired>(&event)) {
      fired.push_back(timer->timer);
    } else if (std::holds_alternative<core::StepBegins>(event)) {
      actions.Do(core::WakeAfter{1, absl::Seconds(1)});
      actions.Do(core::WakeAfter{2, absl::Seconds(1)});
      actions.Do(core::WakeAfter{3, absl::Seconds(1)});
      actions.Do(core::WakeAfter{1, absl::Seconds(3)});
      actions.Do(core::CancelTimer{2});
    }
  });
  driver_.Handle(core::StepBegins{});
  scheduler_.RunFor(absl::Seconds(2));
  EXPECT_EQ(fired, std::vector<uint64_t>{3});
  scheduler_.RunFor(absl::Seconds(2));
  EXPECT_EQ(fired, (std::vector<uint64_t>{3, 1}));
  driver_.Handle(core::StepBegins{});
  driver_.Stop();
  EXPECT_EQ(driver_.get(), nullptr);
  EXPECT_EQ(driver_.step(), 0);
  scheduler_.RunFor(absl::Seconds(5));
  EXPECT_EQ(fired.size(), 2U);
  driver_.Handle(core::StepBegins{});  // nobody is there
}

TEST_F(AlgorithmDriverTest, OnlyWaitsForNeighboursLastAsLongAsTheActorSays) {
  patience_ = 3;
  std::vector<uint64_t> fired;
  Install([&fired](const core::Event& event, core::Actions& actions) {
    if (const auto* timer = std::get_if<core::TimerFired>(&event)) {
      fired.push_back(timer->timer);
    } else if (std::holds_alternative<core::StepBegins>(event)) {
      actions.Do(core::WakeAfter{1, absl::Seconds(1), /*for_neighbours=*/true});
      actions.Do(core::WakeAfter{2, absl::Seconds(1)});
    }
  });
  driver_.Handle(core::StepBegins{});
  scheduler_.RunFor(absl::Milliseconds(1100));
  EXPECT_EQ(fired, std::vector<uint64_t>{2});
  scheduler_.RunFor(absl::Milliseconds(1800));
  EXPECT_EQ(fired, std::vector<uint64_t>{2});
  scheduler_.RunFor(absl::Milliseconds(200));
  EXPECT_EQ(fired, (std::vector<uint64_t>{2, 1}));
}

}  // namespace
}  // namespace dfl::runtime
