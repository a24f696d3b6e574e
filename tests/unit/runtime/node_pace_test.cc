// Steps, rounds and epochs on whole nodes: where the stop rule ends a run of
// each algorithm, and when it is evaluated.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/ports/events.h"
#include "daemon/simports/analytic_learner.h"
#include "daemon/simports/problems.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

constexpr int64_t kNodes = 3;
constexpr int64_t kRowsEach = 40;
constexpr int64_t kBatch = 16;  // an epoch is three steps
constexpr int64_t kEpoch = 3;

ClusterOptions Options() {
  ClusterOptions options;
  options.nodes = kNodes;
  options.seed = 91;
  options.learner = [](int64_t i) {
    simports::SoftmaxSpec spec;
    spec.nodes = kNodes;
    spec.features = 3;
    spec.classes = 3;
    spec.rows_per_node = kRowsEach;
    spec.test_rows = 1;
    simports::AnalyticLearnerOptions learner;
    learner.kind = "softmax";
    learner.seed = static_cast<uint64_t>(i);
    simports::SoftmaxSet set = simports::SoftmaxExample(spec);
    return std::make_unique<simports::AnalyticLearner>(
        learner, std::move(set.nodes[static_cast<size_t>(i)]),
        simports::SoftmaxTest(std::move(set.test), set.test_labels, 3));
  };
  return options;
}

bool Has(const core::AlgorithmInfo& info, const char* knob) {
  return std::any_of(
      info.knobs.begin(), info.knobs.end(),
      [&](const core::KnobSpec& spec) { return spec.name == knob; });
}

// Small steps and short periods.
core::RunPlan PlanOf(const SimCluster& c, const core::AlgorithmInfo& info) {
  core::KnobValues knobs;
  for (const char* step : {"eta", "alpha", "eta_c"}) {
    if (Has(info, step)) knobs[step] = 0.001;
  }
  if (Has(info, "T_ex")) knobs["T_ex"] = int64_t{4};
  if (Has(info, "T0")) knobs["T0"] = int64_t{4};
  if (Has(info, "B")) knobs["B"] = int64_t{2};
  if (Has(info, "sigma0") && info.name == "pame") knobs["sigma0"] = 1000.0;
  if (info.name == "async-dsgd" || info.name == "barrier-dsgd") {
    knobs["gamma_max"] = 0.05;
  }
  core::RunPlan plan = c.MakePlan(info.name, knobs);
  plan.model.classes = 3;
  plan.batch_size = kBatch;
  plan.deadline.exchange = absl::Milliseconds(300);
  if (info.star_graph) plan.topology.kind = "star";
  return plan;
}

class StopRuleOf : public testing::TestWithParam<std::string> {
 protected:
  static const core::AlgorithmInfo& info() {
    return **core::BuiltInCatalogue().Find(GetParam());
  }
  // How far node i came, in a run that ended by `stop`.
  struct End {
    core::Pace pace;
    core::Pace before;  // at the boundary before, of an even pace
    int64_t computed = 0;
    double epochs = 0;
  };
  static std::vector<End> RunTo(const core::StopRule& stop) {
    SimCluster c(Options());
    core::RunPlan plan = PlanOf(c, info());
    plan.stop = stop;
    c.Run(plan);
    EXPECT_TRUE(
        c.RunUntil([&] { return c.AllFinished(); }, absl::Seconds(600)));
    std::vector<End> ends;
    for (int64_t i = 0; i < kNodes; ++i) {
      const core::Algorithm& algorithm = *c.node(i).algorithm();
      const NodeStatus status = c.node(i).Status();
      EXPECT_EQ(status.step, algorithm.gradients());
      ends.push_back({algorithm.pace(), algorithm.PaceAt(algorithm.step() - 1),
                      status.gradients, status.epochs});
      EXPECT_EQ(status.round, algorithm.rounds());
    }
    return ends;
  }
  // Gradients that the learner computes for a step.
  static int64_t EachStep() { return GetParam() == "dfedsam" ? 2 : 1; }
};

TEST_P(StopRuleOf, StepsAreTheGradientsThatAreComputed) {
  core::StopRule stop;
  stop.steps = 37;
  for (const End& end : RunTo(stop)) {
    EXPECT_GE(end.pace.steps, 37);
    EXPECT_LT(end.before.steps, 37) << "the first boundary from there on";
    // A gradient may be under way at the end.
    const int64_t under_way = info().computes_on_copy ? 1 : 0;
    EXPECT_GE(end.computed, end.pace.steps * EachStep());
    EXPECT_LE(end.computed, end.pace.steps * EachStep() + under_way);
  }
}

TEST_P(StopRuleOf, RoundsAreExact) {
  core::StopRule stop;
  stop.rounds = 6;
  if (info().exchange == core::Exchange::kNone) {
    SimCluster c(Options());
    core::RunPlan plan = PlanOf(c, info());
    plan.stop = stop;
    EXPECT_TRUE(absl::IsInvalidArgument(c.SetPlan(0, plan)));
    return;
  }
  for (const End& end : RunTo(stop)) EXPECT_EQ(end.pace.rounds, 6);
}

TEST_P(StopRuleOf, EpochsArePassesOverTheRows) {
  core::StopRule stop;
  stop.epochs = 5.5;
  for (const End& end : RunTo(stop)) {
    EXPECT_GE(end.epochs, 5.5);
    EXPECT_DOUBLE_EQ(end.epochs, static_cast<double>(end.pace.steps) / kEpoch);
    EXPECT_LT(static_cast<double>(end.before.steps) / kEpoch, 5.5);
  }
}

TEST_P(StopRuleOf, TheFirstLimitThatIsMetCounts) {
  core::StopRule stop;
  stop.steps = 1000000;
  stop.epochs = 2;
  for (const End& end : RunTo(stop)) {
    EXPECT_GE(end.pace.steps, 2 * kEpoch);
    EXPECT_LT(end.pace.steps, 50);
  }
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    names.push_back(info.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, StopRuleOf, testing::ValuesIn(Names()),
                         [](const auto& tested) {
                           std::string name;
                           for (const char c : tested.param) {
                             name += c == '-' ? '_' : c == '+' ? 'p' : c;
                           }
                           return name;
                         });

core::RunPlan DfedavgmPlan(const SimCluster& c, int64_t local_steps) {
  core::RunPlan plan = PlanOf(c, **core::BuiltInCatalogue().Find("dfedavgm"));
  plan.algorithm.knobs["K"] = local_steps;
  return plan;
}

// 590 steps with K = 59 are ten rounds.
TEST(NodePace, StepsOfARunWithLocalStepsAreNoRounds) {
  SimCluster c(Options());
  core::RunPlan plan = DfedavgmPlan(c, 59);
  plan.stop.steps = 590;
  c.Run(plan);
  ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
  for (int64_t i = 0; i < kNodes; ++i) {
    const NodeStatus status = c.node(i).Status();
    EXPECT_EQ(status.step, 590);
    EXPECT_EQ(status.gradients, 590);
    EXPECT_EQ(status.round, 10);
    EXPECT_EQ(status.phase_reason, "590 steps are done");
  }
}

// A straggler that jumps, and a node that joins in the midst of the run.
TEST(NodePace, LockStepNodesEndInTheSameRound) {
  for (const bool by_rounds : {true, false}) {
    ClusterOptions options = Options();
    options.gradient_delay = [](int64_t i) {
      return absl::Milliseconds(i == 0 ? 60 : 10);
    };
    SimCluster c(options);
    core::RunPlan plan = DfedavgmPlan(c, 4);
    plan.deadline.exchange = absl::Milliseconds(20);
    (by_rounds ? plan.stop.rounds : plan.stop.steps) = by_rounds ? 50 : 200;
    c.SetPlanEverywhere(plan);
    ASSERT_TRUE(c.node(0).Start().ok());
    ASSERT_TRUE(c.node(1).Start().ok());
    ASSERT_TRUE(c.RunUntil([&] { return c.step(1) >= 20; }));
    ASSERT_TRUE(c.node(2).Start().ok());
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    for (int64_t i = 0; i < kNodes; ++i) {
      EXPECT_EQ(c.node(i).Status().round, 50) << i;
      EXPECT_EQ(c.node(i).Status().step, 200) << i;
    }
    EXPECT_LT(c.node(0).Status().gradients, 200) << "it jumped";
    EXPECT_LT(c.node(2).Status().gradients, 200) << "it joined";
  }
}

// What was done under another algorithm stays done.
TEST(NodePace, AnotherAlgorithmGoesOnCounting) {
  SimCluster c(Options());
  core::RunPlan plan = DfedavgmPlan(c, 4);
  c.Run(plan);
  ASSERT_TRUE(c.RunToStep(10));
  plan.version = 2;
  plan.algorithm.name = "d-psgd";
  plan.algorithm.knobs = {{"eta", 0.001}};
  const int64_t before = c.node(0).Status().step;
  EXPECT_GE(before, 40);
  c.SetPlanEverywhere(plan);
  ASSERT_TRUE(c.RunUntil([&] {
    return c.node(0).Status().algorithm == "d-psgd" && c.step(0) >= 20;
  }));
  EXPECT_GE(c.node(0).Status().step, before);
  EXPECT_LT(c.node(0).Status().step, before + 30);
  EXPECT_EQ(c.node(0).Status().round, c.step(0));
}

// Also when the algorithm was another one before.
TEST(NodePace, AJoinerCountsOnFromWhatTheOthersHaveCounted) {
  SimCluster c(Options());
  core::RunPlan plan = DfedavgmPlan(c, 4);
  c.SetPlanEverywhere(plan);
  ASSERT_TRUE(c.node(0).Start().ok());
  ASSERT_TRUE(c.node(1).Start().ok());
  ASSERT_TRUE(c.RunUntil([&] { return c.step(0) >= 10; }));
  plan.version = 2;
  plan.algorithm.name = "d-psgd";
  plan.algorithm.knobs = {{"eta", 0.001}};
  plan.stop.steps = 150;
  c.SetPlanEverywhere(plan);
  ASSERT_TRUE(c.RunUntil([&] { return c.step(0) >= 20; }));
  ASSERT_TRUE(c.node(2).Start().ok());
  ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
  ASSERT_EQ(c.log(2).Count<ports::StateTaken>(), 1);
  for (int64_t i = 0; i < kNodes; ++i) {
    EXPECT_EQ(c.node(i).Status().step, 150) << i;
    EXPECT_EQ(c.node(i).Status().round, c.node(0).Status().round) << i;
  }
}

// Every so many steps, at the first boundary from there on.
TEST(NodePace, EvaluationsAreDueBySteps) {
  SimCluster c(Options());
  core::RunPlan plan = DfedavgmPlan(c, 4);
  plan.evaluation.every_steps = 10;
  plan.stop.steps = 40;
  c.Run(plan);
  ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
  std::vector<int64_t> steps;
  for (const ports::Evaluated& made : c.log(0).Of<ports::Evaluated>()) {
    steps.push_back(made.step);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{12, 20, 32, 40}));
}

// E epochs stay E epochs.
TEST(NodePace, RoundsOfEpochsFollowTheBatchSize) {
  for (const char* name : {"decefl", "fedavg"}) {
    SCOPED_TRACE(name);
    SimCluster c(Options());
    core::RunPlan plan = PlanOf(c, **core::BuiltInCatalogue().Find(name));
    if (plan.algorithm.name == "decefl") {
      plan.algorithm.knobs["form"] = std::string("local");
    }
    plan.stop.rounds = 4;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    const NodeStatus before = c.node(0).Status();
    EXPECT_DOUBLE_EQ(before.epochs, 4);
    EXPECT_EQ(before.step, 4 * kEpoch);
    plan.version = 2;
    plan.batch_size = kRowsEach;
    plan.stop.rounds = 10;
    c.SetPlanEverywhere(plan);
    c.StartAll();
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    const NodeStatus after = c.node(0).Status();
    EXPECT_DOUBLE_EQ(after.epochs, 10);
    EXPECT_EQ(after.step, before.step + 6);
  }
}

// Larger batches make an epoch shorter from then on only.
TEST(NodePace, EpochsOfAnotherBatchSizeAreAdded) {
  SimCluster c(Options());
  core::RunPlan plan = PlanOf(c, **core::BuiltInCatalogue().Find("local"));
  plan.stop.steps = 6;  // two epochs
  c.Run(plan);
  ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
  EXPECT_DOUBLE_EQ(c.node(0).Status().epochs, 2);
  plan.version = 2;
  plan.batch_size = kRowsEach;
  plan.stop.steps = 9;
  c.SetPlanEverywhere(plan);
  EXPECT_DOUBLE_EQ(c.node(0).Status().epochs, 2);
  c.StartAll();
  ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
  EXPECT_DOUBLE_EQ(c.node(0).Status().epochs, 5);
}

}  // namespace
}  // namespace dfl::runtime
