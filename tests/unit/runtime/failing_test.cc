// Training that fails: what came to nothing is not counted as done, and a run
// that does not train ends as failed and says so.
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/runtime/guards/divergence.h"
#include "daemon/runtime/guards/training_health.h"
#include "daemon/runtime/progress.h"
#include "daemon/simports/analytic_learner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

using ports::Phase;
using testing::HasSubstr;

// The n-th call of Gradient (from 0) ends as `script` says; OK: a gradient of
// `value` everywhere, at a loss of `loss`.
class ScriptedLearner : public simports::FakeLearner {
 public:
  using Script = std::function<absl::Status(int64_t call)>;
  explicit ScriptedLearner(Script script)
      : simports::FakeLearner(100, 3), script_(std::move(script)) {}
  absl::Status Bind(absl::Span<float> parameters, absl::Span<float> gradient,
                    absl::Span<float> buffers) override {
    gradient_ = gradient;
    buffers_ = buffers;
    return simports::FakeLearner::Bind(parameters, gradient, buffers);
  }
  absl::StatusOr<ports::GradientResult> Gradient(
      const ports::GradientRequest& request) override {
    for (float& value : buffers_) value += 1;
    const absl::Status status = script_(calls_++);
    if (!status.ok()) return status;
    for (float& g : gradient_) g = value;
    ports::GradientResult result;
    result.loss = loss;
    result.rows = request.batch_size;
    return result;
  }

  float value = 0;
  double loss = 0.5;

 private:
  const Script script_;
  int64_t calls_ = 0;
  absl::Span<float> gradient_;
  absl::Span<float> buffers_;
};

absl::Status Bad() { return absl::DataLossError("row 7 is not a number"); }

ClusterOptions Scripted(int64_t nodes, ScriptedLearner::Script of_node_0) {
  ClusterOptions options;
  options.nodes = nodes;
  options.seed = 71;
  options.learner = [script = std::move(of_node_0)](int64_t node) {
    return std::make_unique<ScriptedLearner>(
        node == 0 ? script : [](int64_t) { return absl::OkStatus(); });
  };
  return options;
}

TEST(Failing, ARunWithoutOneGradientFailsAndSaysHowFarItCame) {
  RunTwice(Scripted(1, [](int64_t) { return Bad(); }), [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("local");
    plan.stop.steps = 50;
    c.Run(plan);
    c.RunFor(absl::Seconds(10));
    EXPECT_EQ(c.node(0).phase(), Phase::kDegraded) << "it takes its time";
    c.RunFor(absl::Seconds(10));
    EXPECT_EQ(c.node(0).phase(), Phase::kFailed);
    const NodeStatus status = c.node(0).Status();
    EXPECT_EQ(status.phase_reason,
              "0 of 50 steps: 20 gradients in a row came to nothing; the last: "
              "row 7 is not a number");
    EXPECT_EQ(status.step, 0);
    EXPECT_EQ(status.gradients, 0);
    EXPECT_EQ(status.failed_gradients, 20);
    EXPECT_EQ(status.skipped_batches, 4);
    EXPECT_FALSE(status.loss.has_value());
    EXPECT_EQ(c.log(0).Count<ports::LearnerFailed>(), 1);
    // It may be tried again, and fails again.
    ASSERT_TRUE(c.node(0).Resume().ok());
    EXPECT_EQ(c.node(0).phase(), Phase::kTraining);
    c.RunFor(absl::Seconds(20));
    EXPECT_EQ(c.node(0).phase(), Phase::kFailed);
    EXPECT_EQ(c.node(0).Status().failed_gradients, 40);
  });
}

// A GPU that resets fails at every batch for a while, whatever is in it.
TEST(Failing, FiveBadBatchesInARowArePausedForAndCostNoRun) {
  const auto for_a_while = [](int64_t call) {
    return call >= 10 && call < 18 ? Bad() : absl::OkStatus();
  };
  RunTwice(Scripted(1, for_a_while), [](SimCluster& c) {
    c.Run(c.MakePlan("local"));
    ASSERT_TRUE(
        c.RunUntil([&] { return c.node(0).phase() == Phase::kDegraded; },
                   absl::Seconds(1)));
    EXPECT_EQ(c.node(0).Status().skipped_batches, 4);
    EXPECT_EQ(c.node(0).Status().failed_gradients, 5);
    c.RunFor(absl::Seconds(2));
    EXPECT_EQ(c.node(0).phase(), Phase::kDegraded);
    c.RunFor(absl::Seconds(3));
    EXPECT_EQ(c.node(0).phase(), Phase::kTraining);
    EXPECT_EQ(c.node(0).Status().failed_gradients, 8);
    EXPECT_EQ(c.node(0).Status().skipped_batches, 4);
    EXPECT_EQ(c.node(0).Status().last_error, "");
  });
}

TEST(Failing, AfterAResumeTheErrorGoesWithTheFirstGradient) {
  RunTwice(
      Scripted(
          1, [](int64_t call) { return call < 20 ? Bad() : absl::OkStatus(); }),
      [](SimCluster& c) {
        c.Run(c.MakePlan("local"));
        ASSERT_TRUE(
            c.RunUntil([&] { return c.node(0).phase() == Phase::kFailed; },
                       absl::Seconds(30)));
        EXPECT_NE(c.node(0).Status().last_error, "");
        ASSERT_TRUE(c.node(0).Resume().ok());
        ASSERT_TRUE(c.RunToStep(5));
        EXPECT_EQ(c.node(0).Status().last_error, "");
      });
}

TEST(Failing, ABadBatchIsPassedOverAndLeavesNothing) {
  const auto every_third = [](int64_t call) {
    return call % 3 == 2 ? Bad() : absl::OkStatus();
  };
  RunTwice(Scripted(1, every_third), [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("local");
    plan.stop.steps = 50;
    c.Run(plan);
    c.RunFor(absl::Seconds(5));
    EXPECT_EQ(c.node(0).phase(), Phase::kFinished);
    const NodeStatus status = c.node(0).Status();
    EXPECT_EQ(status.step, 50);
    EXPECT_EQ(status.skipped_batches, 24);
    EXPECT_EQ(status.last_error, "");
    EXPECT_DOUBLE_EQ(status.loss.value_or(0), 0.5);
    // What a bad batch did to the module's buffers is undone.
    const std::vector<float> begun = [&] {
      ScriptedLearner same([](int64_t) { return absl::OkStatus(); });
      std::vector<float> w(100);
      std::vector<float> g(100);
      std::vector<float> b(3);
      EXPECT_TRUE(
          same.Bind(absl::MakeSpan(w), absl::MakeSpan(g), absl::MakeSpan(b))
              .ok());
      EXPECT_TRUE(same.Initialise(DeriveSeed(plan.seed, "model")).ok());
      return b;
    }();
    for (size_t l = 0; l < begun.size(); ++l) {
      EXPECT_NEAR(c.node(0).buffers()[l], begun[l] + 50, 1e-3);
    }
  });
}

TEST(Failing, MoreBadBatchesThanGoodOnesEndTheRun) {
  const auto most = [](int64_t call) {
    return call % 5 < 3 ? Bad() : absl::OkStatus();
  };
  RunTwice(Scripted(1, most), [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("local");
    plan.stop.steps = 1000;
    c.Run(plan);
    c.RunFor(absl::Seconds(10));
    EXPECT_EQ(c.node(0).phase(), Phase::kFailed);
    EXPECT_THAT(c.node(0).Status().phase_reason,
                HasSubstr("80 of 1000 steps: 120 of the last 200 gradients"));
  });
}

// A degraded node mixes on at its pace; its steps, and step sizes that shrink
// with them, stand still.
TEST(Failing, AStepWithoutAGradientIsNone) {
  for (const char* algorithm :
       {"pame", "d-psgd", "decefl", "dfedavgm", "k-gt", "choco-sgd"}) {
    SCOPED_TRACE(algorithm);
    RunTwice(Scripted(3,
                      [](int64_t call) {
                        return call < 50 ? absl::OkStatus()
                                         : absl::InternalError("no memory");
                      }),
             [&](SimCluster& c) {
               core::KnobValues knobs;
               if (std::string(algorithm) == "pame") {
                 knobs = {{"kappa", core::IntRange{1, 2}},
                          {"nu", 1.0},
                          {"sigma0", 2.0},
                          {"gamma", 1.01}};
               } else if (std::string(algorithm) == "decefl") {
                 knobs = {{"delta", 1.0}, {"Gamma", 10.0}};
               }
               core::RunPlan plan = c.MakePlan(algorithm, knobs);
               plan.stop.time = absl::Hours(1);
               c.Run(plan);
               ASSERT_TRUE(c.RunUntil(
                   [&] { return c.node(0).phase() == Phase::kDegraded; }));
               const int64_t gradients = c.node(0).Status().gradients;
               const double step_size =
                   c.node(0).Status().gauges.at("step_size");
               const int64_t received = c.node(0).models_received();
               c.RunFor(absl::Seconds(5));
               EXPECT_EQ(c.node(0).phase(), Phase::kDegraded);
               EXPECT_EQ(c.node(0).Status().gradients, gradients);
               EXPECT_NEAR(c.node(0).Status().gauges.at("step_size"), step_size,
                           0.02 * step_size);
               EXPECT_GT(c.node(0).models_received(), received + 20);
               EXPECT_GT(c.node(1).Status().gradients, gradients + 20);
             });
  }
}

// In the midst of local steps, too; and it holds nobody up afterwards.
TEST(Failing, AFailedNodeAnswersAndIsWaitedForByNobody) {
  for (const char* algorithm :
       {"dfedavgm", "d-psgd", "spod-gt", "async-dsgd"}) {
    SCOPED_TRACE(algorithm);
    RunTwice(Scripted(3,
                      [](int64_t call) {
                        return call < 52 ? absl::OkStatus() : Bad();
                      }),
             [&](SimCluster& c) {
               core::KnobValues knobs;
               if (std::string(algorithm) == "async-dsgd") {
                 knobs = {{"gamma_max", 0.02}};
               }
               c.Run(c.MakePlan(algorithm, knobs));
               ASSERT_TRUE(c.RunUntil(
                   [&] { return c.node(0).phase() == Phase::kFailed; },
                   absl::Seconds(30)));
               EXPECT_TRUE(c.node(0).algorithm()->parameters_settled());
               const int64_t step = c.step(1);
               c.RunFor(absl::Seconds(3));
               EXPECT_GT(c.step(1), step + 20);
               // It still gives its model to one that starts.
               c.node(0).CopyModel([](absl::StatusOr<SnapshotPtr> model) {
                 EXPECT_TRUE(model.ok()) << model.status();
               });
             });
  }
}

TEST(Failing, AModelThatBlowsUpEndsTheRunAndGoesToNobody) {
  RunTwice(Scripted(3, [](int64_t) { return absl::OkStatus(); }),
           [](SimCluster& c) {
             core::RunPlan plan = c.MakePlan("d-psgd", {{"eta", 0.1}});
             c.Run(plan);
             ASSERT_TRUE(c.RunToStep(100));
             static_cast<ScriptedLearner&>(c.learner(0)).value = 1e6F;
             ASSERT_TRUE(
                 c.RunUntil([&] { return c.node(0).phase() == Phase::kFailed; },
                            absl::Seconds(5)));
             EXPECT_THAT(c.node(0).Status().phase_reason,
                         HasSubstr("the model has diverged"));
             EXPECT_THAT(c.node(0).Status().last_error,
                         HasSubstr("the model has diverged"));
             c.RunFor(absl::Seconds(2));
             for (const int64_t i : {1, 2}) {
               EXPECT_EQ(c.node(i).phase(), Phase::kTraining);
               EXPECT_GT(c.node(i).Status().far_models, 0);
               for (const float w : c.parameters(i)) {
                 ASSERT_LT(std::abs(w), 100);
               }
             }
             EXPECT_FALSE(c.node(0).Resume().ok());
             auto model = std::make_shared<Snapshot>();
             model->parameters = FlatVector(100, 0.5F);
             model->buffers = FlatVector(3, 0.0F);
             static_cast<ScriptedLearner&>(c.learner(0)).value = 0;
             c.node(0).ReplaceModel(model, [](const absl::Status& status) {
               EXPECT_TRUE(status.ok()) << status;
             });
             EXPECT_TRUE(c.node(0).Resume().ok());
             c.RunFor(absl::Seconds(1));
             EXPECT_EQ(c.node(0).phase(), Phase::kTraining);
           });
}

TEST(Failing, AGradientAtAWildLossIsNotUsed) {
  RunTwice(Scripted(1, [](int64_t) { return absl::OkStatus(); }),
           [](SimCluster& c) {
             c.Run(c.MakePlan("local", {{"eta", 0.1}}));
             ASSERT_TRUE(c.RunToStep(30));
             auto& learner = static_cast<ScriptedLearner&>(c.learner(0));
             const std::vector<float> before = c.parameters(0);
             learner.loss = 2000;
             learner.value = 1;
             c.RunFor(absl::Milliseconds(35));
             EXPECT_EQ(c.parameters(0), before);
             EXPECT_GT(c.node(0).Status().skipped_batches, 1);
             learner.loss = 0.5;
             c.RunFor(absl::Milliseconds(50));
             EXPECT_NE(c.parameters(0), before);
             EXPECT_LT(c.node(0).Status().loss.value_or(9), 1);
           });
}

// What is usual is known after a few.
TEST(Failing, AWildBatchAmongTheFirstIsNotUsedEither) {
  RunTwice(
      Scripted(1, [](int64_t) { return absl::OkStatus(); }), [](SimCluster& c) {
        c.Run(c.MakePlan("local", {{"eta", 0.1}}));
        ASSERT_TRUE(c.RunToStep(5));
        auto& learner = static_cast<ScriptedLearner&>(c.learner(0));
        const std::vector<float> before = c.parameters(0);
        learner.loss = 1e9;
        learner.value = 1;
        ASSERT_TRUE(
            c.RunUntil([&] { return c.node(0).Status().skipped_batches == 2; },
                       absl::Seconds(1)));
        EXPECT_EQ(c.parameters(0), before);
        learner.loss = 0.5;
        learner.value = 0;
        ASSERT_TRUE(c.RunToStep(30));
        EXPECT_EQ(c.node(0).phase(), Phase::kTraining);
        // Nor does it make room for others.
        learner.loss = 2000;
        learner.value = 1;
        ASSERT_TRUE(
            c.RunUntil([&] { return c.node(0).Status().skipped_batches == 4; },
                       absl::Seconds(1)));
        EXPECT_EQ(c.parameters(0), before);
      });
}

TEST(Failing, AnImportedModelIsJudgedAnew) {
  RunTwice(Scripted(1, [](int64_t) { return absl::OkStatus(); }),
           [](SimCluster& c) {
             c.Run(c.MakePlan("local", {{"eta", 0.1}}));
             ASSERT_TRUE(c.RunToStep(30));
             auto& learner = static_cast<ScriptedLearner&>(c.learner(0));
             auto model = std::make_shared<Snapshot>();
             model->parameters = FlatVector(100, 5000.0F);
             model->buffers = FlatVector(3, 0.0F);
             c.node(0).ReplaceModel(model, [&](const absl::Status& status) {
               EXPECT_TRUE(status.ok()) << status;
               learner.loss = 2000;
               learner.value = 1;
             });
             const int64_t step = c.node(0).Status().step;
             c.RunFor(absl::Seconds(3));
             EXPECT_EQ(c.node(0).phase(), Phase::kTraining);
             EXPECT_EQ(c.node(0).Status().skipped_batches, 0);
             EXPECT_GT(c.node(0).Status().step, step + 100);
           });
}

TEST(ProgressTest, WhatWasJumpedOverIsNotDone) {
  Progress progress;
  absl::Time now = absl::UnixEpoch();
  progress.Resume(now);
  int64_t gradients = 0;
  for (int i = 0; i < 100; ++i) {
    progress.BeginStep(gradients);
    now += absl::Milliseconds(100);
    gradients += 2;
    progress.OnStep(gradients, now);
    if (i % 10 == 0) gradients += 1000;
  }
  EXPECT_NEAR(progress.StepsPerSecond(), 20, 0.5);
}

TEST(TrainingHealthTest, FailsAfterTwentyInARowOrMoreThanHalfOf200) {
  TrainingHealth health;
  for (int i = 0; i < 19; ++i) health.OnFailure(true);
  EXPECT_EQ(health.Failure(), "");
  health.OnGradient();
  health.OnFailure(false);
  EXPECT_EQ(health.Failure(), "");
  for (int i = 0; i < 19; ++i) health.OnFailure(false);
  EXPECT_EQ(health.Failure(), "20 gradients in a row came to nothing");
  EXPECT_EQ(health.failed(), 39);
  EXPECT_EQ(health.passed_over(), 19);
  health.TryAnew();
  EXPECT_EQ(health.Failure(), "");
  for (int i = 0; i < 100; ++i) {
    health.OnFailure(true);
    health.OnGradient();
  }
  EXPECT_EQ(health.Failure(), "");  // just half
  health.OnFailure(true);
  health.OnFailure(true);
  EXPECT_EQ(health.Failure(), "101 of the last 200 gradients came to nothing");
}

TEST(TrainingHealthTest, FourBatchesInARowArePassedOverAndPredictionsCount) {
  TrainingHealth health;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(health.MayPassOver());
    health.OnFailure(true);
  }
  EXPECT_FALSE(health.MayPassOver());
  health.OnGradient();
  EXPECT_TRUE(health.MayPassOver());
  for (int i = 0; i < 19; ++i) health.OnPrediction(false);
  EXPECT_EQ(health.Failure(), "");
  health.OnGradient();
  health.OnPrediction(false);
  EXPECT_EQ(health.Failure(), "20 predictions in a row came to nothing");
  health.OnPrediction(true);
  EXPECT_EQ(health.Failure(), "");
}

TEST(DivergenceTest, BoundsGrowWithWhatWasThereAtFirst) {
  Divergence divergence;
  const std::vector<float> small(10, 0.1F);
  const std::vector<float> large(10, 50.0F);
  const std::vector<float> huge(10, 2000.0F);
  const std::vector<float> none(10, std::nanf(""));
  divergence.Begin(small);
  EXPECT_EQ(divergence.OnParameters(large), "");
  EXPECT_NE(divergence.OnParameters(huge), "");
  EXPECT_NE(divergence.OnParameters(none), "");
  divergence.Begin(large);
  EXPECT_EQ(divergence.OnParameters(huge), "");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(divergence.OnLoss(30.0 - i), "");
  EXPECT_EQ(divergence.OnLoss(29'000), "");
  EXPECT_NE(divergence.OnLoss(31'000), "");
}

TEST(DivergenceTest, TheFirstLossesAreComparedWithEachOther) {
  Divergence divergence;
  const std::vector<float> model(10, 0.1F);
  divergence.Begin(model);
  EXPECT_EQ(divergence.OnLoss(1e6), "") << "nothing is known yet";
  EXPECT_EQ(divergence.OnLoss(1e5), "");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(divergence.OnLoss(2), "");
  EXPECT_NE(divergence.OnLoss(2500), "");
  EXPECT_EQ(divergence.OnLoss(1500), "");
  for (int i = 0; i < 6; ++i) EXPECT_EQ(divergence.OnLoss(2), "");
  // Neither the first two nor the wild one set the bound.
  EXPECT_EQ(divergence.OnLoss(1.4e6), "");
  EXPECT_NE(divergence.OnLoss(1.6e6), "");
  // Where one is nothing by chance, two others are enough.
  divergence.Begin(model);
  EXPECT_EQ(divergence.OnLoss(0), "");
  EXPECT_NE(divergence.OnLoss(5000), "");
  EXPECT_EQ(divergence.OnLoss(5000), "");
}

}  // namespace
}  // namespace dfl::runtime
