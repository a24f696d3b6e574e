// Other rows within a run: the trainer of a node is replaced at a boundary, and
// model, algorithm, steps and trackers stay.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/simports/analytic_learner.h"
#include "daemon/simports/problems.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/least_squares.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

using ports::Phase;

using ProblemPtr = std::shared_ptr<const simports::Problem>;

// Rows around another truth than those of Problems.
ProblemPtr OtherRows(int64_t rows, uint64_t seed = 77) {
  simports::ExampleSpec spec;
  spec.nodes = 1;
  spec.n = kParameters;
  spec.rows_per_node = rows;
  spec.seed = seed;
  return std::move(simports::LinearRegressionExample(spec).nodes[0]);
}

// The learner of LeastSquaresCluster on these rows.
std::unique_ptr<ports::Learner> LearnerOn(ProblemPtr rows) {
  simports::AnalyticLearnerOptions options;
  options.kind = "least-squares";
  options.seed = 5;
  return std::make_unique<simports::AnalyticLearner>(options, std::move(rows));
}

ClusterOptions OneSlowNode(const Problems& problems) {
  ClusterOptions options = LeastSquaresCluster(problems, 31);
  options.gradient_delay = [](int64_t) { return absl::Seconds(1); };
  return options;
}

// 40 rows in batches of 16 are 3 steps an epoch, 80 rows are 5.
TEST(Renewal, TheRunGoesOnAtTheNextBoundary) {
  const Problems problems(1);
  const ClusterOptions options = OneSlowNode(problems);
  const ProblemPtr more = OtherRows(80);
  RunTwice(options, [&](SimCluster& c) {
    SimCluster twin(options);  // nobody gives it other rows
    for (SimCluster* cluster : {&c, &twin}) {
      cluster->Run(cluster->MakePlan("local", {{"eta", 0.1}}));
      cluster->RunFor(absl::Milliseconds(2500));
    }
    ASSERT_TRUE(c.RenewTrainer(0, LearnerOn(more)).ok());
    EXPECT_EQ(c.node(0).Status().train_rows, 40) << "a gradient is under way";
    c.RunFor(absl::Milliseconds(400));
    EXPECT_EQ(c.node(0).Status().train_rows, 40);
    c.RunFor(absl::Milliseconds(200));
    twin.RunFor(absl::Milliseconds(600));
    NodeStatus status = c.node(0).Status();
    EXPECT_EQ(status.train_rows, 80);
    EXPECT_EQ(status.phase, Phase::kTraining);
    EXPECT_EQ(status.step, 3);
    EXPECT_EQ(status.gradients, 3);
    EXPECT_DOUBLE_EQ(status.epochs, 1);
    EXPECT_EQ(c.parameters(0), twin.parameters(0));
    // The pass over the rows before was through.
    const std::optional<ports::BatchPosition> position =
        c.learner(0).position();
    ASSERT_TRUE(position.has_value());
    EXPECT_EQ(position->rows, 80);
    EXPECT_EQ(position->pass, 1U);
    EXPECT_EQ(position->row, 0);

    c.RunFor(absl::Seconds(5));
    twin.RunFor(absl::Seconds(5));
    status = c.node(0).Status();
    EXPECT_EQ(status.step, 8);
    EXPECT_DOUBLE_EQ(status.epochs, 2);
    EXPECT_NE(c.parameters(0), twin.parameters(0));
    EXPECT_EQ(c.log(0).Count<ports::PlanAdopted>(), 1);
    EXPECT_EQ(c.log(0).Count<ports::PhaseChanged>(),
              twin.log(0).Count<ports::PhaseChanged>());
    const auto notes = c.log(0).Of<ports::DataNote>();
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_FALSE(notes[0].warning);
    EXPECT_EQ(notes[0].text, "80 rows taken up (40 before)");
  });
}

TEST(Renewal, AsManyRowsGoOnInTheMidstOfThePass) {
  const Problems problems(1);
  const ProblemPtr others = OtherRows(kRows);
  RunTwice(OneSlowNode(problems), [&](SimCluster& c) {
    c.Run(c.MakePlan("local", {{"eta", 0.1}}));
    c.RunFor(absl::Milliseconds(1500));
    const std::optional<ports::BatchPosition> before = c.learner(0).position();
    ASSERT_TRUE(before.has_value());
    ASSERT_EQ(before->row, 16);
    ASSERT_TRUE(c.RenewTrainer(0, LearnerOn(others)).ok());
    c.RunFor(absl::Seconds(1));
    const std::optional<ports::BatchPosition> after = c.learner(0).position();
    ASSERT_TRUE(after.has_value());
    EXPECT_EQ(after->seed, before->seed);
    EXPECT_EQ(after->pass, 0U);
    EXPECT_EQ(after->row, 32);
    EXPECT_EQ(c.node(0).Status().step, 2);
  });
}

TEST(Renewal, WhatCountsEpochsCountsTheNewRows) {
  const Problems problems(1);
  const ProblemPtr more = OtherRows(80);
  RunTwice(LeastSquaresCluster(problems, 32), [&](SimCluster& c) {
    c.Run(c.MakePlan(
        "decefl",
        {{"form", std::string("local")}, {"E", int64_t{1}}, {"eta", 0.01}}));
    ASSERT_TRUE(c.RunToStep(4));
    ASSERT_TRUE(c.RenewTrainer(0, LearnerOn(more)).ok());
    ASSERT_TRUE(
        c.RunUntil([&] { return c.node(0).Status().train_rows == 80; }));
    const NodeStatus before = c.node(0).Status();
    EXPECT_EQ(before.step, 3 * before.round);
    EXPECT_DOUBLE_EQ(before.epochs, static_cast<double>(before.round));
    ASSERT_TRUE(c.RunToStep(before.round + 2));
    const NodeStatus after = c.node(0).Status();
    EXPECT_EQ(after.step - before.step, 5 * (after.round - before.round));
    EXPECT_DOUBLE_EQ(after.epochs, static_cast<double>(after.round));
  });
}

// Trackers follow by the difference of two gradients: their sum is that of the
// new rows' gradients, though no tracker epoch begins.
TEST(Renewal, TrackersStayAndLeadToTheNewOptimum) {
  const Problems problems;
  Problems later = problems;
  later.all[0] = OtherRows(kRows);
  const double least = later.Least();
  RunTwice(LeastSquaresCluster(problems, 33), [&](SimCluster& c) {
    core::RunPlan plan = FullBatches(c.MakePlan("push-pull", {{"eta", 0.1}}));
    plan.topology.kind = "ring";
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(50));
    EXPECT_GT(later.Loss(c.parameters(1)), least + 0.005);
    ASSERT_TRUE(c.RenewTrainer(0, LearnerOn(later.all[0])).ok());
    ASSERT_TRUE(c.RunToStep(1000, absl::Seconds(600)));
    for (int64_t i = 0; i < c.size(); ++i) {
      EXPECT_NEAR(later.Loss(c.parameters(i)), least, 1e-3) << "node " << i;
      EXPECT_EQ(c.node(i).parcels().epoch(), 1U);
      EXPECT_EQ(c.log(i).Count<ports::StateTaken>(), 0);
    }
  });
}

// A gradient of async-dsgd outlives its round: rounds go on until the learner
// is free, and the model that moves meanwhile is not the learner's copy.
TEST(Renewal, WaitsForAGradientThatOutlivesItsRound) {
  constexpr absl::Duration kBarrier = absl::Milliseconds(20);
  const Problems problems;
  Problems later = problems;
  later.all[3] = OtherRows(80);
  ClusterOptions options = LeastSquaresCluster(problems, 34);
  options.gradient_delay = [kBarrier](int64_t i) {
    return i == 3 ? 3.5 * kBarrier : kBarrier / 2;
  };
  RunTwice(options, [&](SimCluster& c) {
    core::RunPlan plan = FullBatches(c.MakePlan(
        "async-dsgd",
        {{"eta", 0.05}, {"gamma_max", absl::ToDoubleSeconds(kBarrier)}}));
    plan.deadline.exchange = absl::Milliseconds(200);
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(20));
    ASSERT_TRUE(c.RenewTrainer(3, LearnerOn(later.all[3])).ok());
    const absl::Time from = c.Now();
    ASSERT_TRUE(
        c.RunUntil([&] { return c.node(3).Status().train_rows == 80; }));
    EXPECT_LE(c.Now() - from, absl::Seconds(1));
    EXPECT_LE(c.LongestGap(0, from, c.Now()), 10 * kBarrier);
    ASSERT_TRUE(c.RunToStep(1000, absl::Seconds(600)));
    const double start = later.Loss(std::vector<float>(kParameters, 0.0F));
    for (int64_t i = 0; i < c.size(); ++i) {
      EXPECT_LT(later.Loss(c.parameters(i)), 0.9 * start) << "node " << i;
      EXPECT_EQ(c.log(i).Count<ports::LearnerFailed>(), 0);
    }
  });
}

TEST(Renewal, ANodeThatStandsTakesThemAtOnce) {
  const Problems problems(1);
  const ProblemPtr more = OtherRows(80);
  RunTwice(LeastSquaresCluster(problems, 35), [&](SimCluster& c) {
    EXPECT_TRUE(absl::IsFailedPrecondition(c.RenewTrainer(0, LearnerOn(more))))
        << "there is no plan, so no trainer";
    c.SetPlanEverywhere(c.MakePlan("local", {{"eta", 0.1}}));
    ASSERT_TRUE(c.RenewTrainer(0, LearnerOn(more)).ok());
    EXPECT_EQ(c.node(0).Status().train_rows, 80) << "before the start";
    c.StartAll();
    ASSERT_TRUE(c.RunToStep(10));
    ASSERT_TRUE(c.node(0).Pause().ok());
    ASSERT_TRUE(
        c.RunUntil([&] { return c.node(0).phase() == Phase::kPaused; }));
    const std::vector<float> model = c.parameters(0);
    ASSERT_TRUE(c.RenewTrainer(0, LearnerOn(problems.all[0])).ok());
    EXPECT_EQ(c.node(0).Status().train_rows, 40);
    EXPECT_EQ(c.parameters(0), model);
    const int64_t step = c.step(0);
    ASSERT_TRUE(c.node(0).Resume().ok());
    ASSERT_TRUE(c.RunToStep(step + 10));
  });
}

TEST(Renewal, AnotherModelIsRefused) {
  ClusterOptions options;
  options.nodes = 1;
  RunTwice(options, [](SimCluster& c) {
    c.Run(c.MakePlan("local"));
    ASSERT_TRUE(c.RunToStep(5));
    EXPECT_TRUE(absl::IsInvalidArgument(
        c.RenewTrainer(0, std::make_unique<simports::FakeLearner>(999, 7))));
    EXPECT_TRUE(absl::IsInvalidArgument(c.RenewTrainer(
        0, std::make_unique<simports::FakeLearner>(1000, 7, "other"))));
    ASSERT_TRUE(c.RunToStep(10));
    EXPECT_EQ(c.log(0).Count<ports::DataNote>(), 0);
  });
}

}  // namespace
}  // namespace dfl::runtime
