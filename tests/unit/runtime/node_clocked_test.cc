// Asynchronous DSGD on whole nodes: gradients that outlive their round.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "daemon/simports/analytic_learner.h"
#include "daemon/simports/problems.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/least_squares.h"
#include "tests/unit/runtime/sim_cluster.h"
#include "tests/unit/runtime/unit_learner.h"

namespace dfl::runtime {
namespace {

constexpr int64_t kNodes = 4;
constexpr absl::Duration kBarrier = absl::Milliseconds(20);
constexpr int64_t kSlow = 3;  // its gradients take 3.5 barriers

// Least squares; the first problem is the test of all nodes.
class NodeClocked : public testing::TestWithParam<std::string> {
 protected:
  double Loss(absl::Span<const float> w) const { return problems_.Loss(w); }

  ClusterOptions Options(uint64_t seed) const {
    simports::AnalyticTest test;
    test.problem = problems_.all[0];
    ClusterOptions options = LeastSquaresCluster(problems_, seed, test);
    options.gradient_delay = [](int64_t i) {
      return i == kSlow ? 3.5 * kBarrier : kBarrier / 2;
    };
    return options;
  }

  static core::RunPlan Plan(const SimCluster& c, const std::string& algorithm,
                            core::KnobValues knobs = {}) {
    knobs["eta"] = 0.05;
    if (algorithm == "async-dsgd" || algorithm == "barrier-dsgd") {
      knobs["gamma_max"] = absl::ToDoubleSeconds(kBarrier);
    }
    core::RunPlan plan = c.MakePlan(algorithm, std::move(knobs));
    plan.batch_size = kRows;
    plan.deadline.exchange = absl::Milliseconds(200);
    return plan;
  }

  const Problems problems_{kNodes};
};

TEST_P(NodeClocked, TrainsWithAStraggler) {
  RunTwice(Options(41), [&](SimCluster& c) {
    core::RunPlan plan = Plan(c, GetParam());
    plan.stop.rounds = 500;
    plan.evaluation.every_steps = 50;
    plan.evaluation.examples = 0;
    c.Run(plan);
    const absl::Time from = c.Now();
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    const double start = Loss(std::vector<float>(20, 0.0F));
    for (int64_t i = 0; i < kNodes; ++i) {
      EXPECT_LT(Loss(c.parameters(i)), 0.5 * start) << "node " << i;
      const NodeStatus status = c.node(i).Status();
      // Of a node whose every gradient is discarded there is the last one.
      const bool never = i == kSlow && GetParam() == "barrier-dsgd";
      EXPECT_GE(c.log(i).Count<ports::Evaluated>(), never ? 1 : 3);
      EXPECT_EQ(c.node(i).algorithm()->rounds(), 500);
      EXPECT_EQ(status.evaluated_step, status.step);
      // The last gradient may not be in.
      EXPECT_LE(status.step, status.gradients);
      EXPECT_EQ(c.log(i).Count<ports::LearnerFailed>(), 0);
    }
    auto slow = c.node(kSlow).Status();
    if (GetParam() == "sync-dsgd") {
      // Everyone keeps the straggler's pace.
      EXPECT_GT(c.Now() - from, 500 * 3.5 * kBarrier);
      EXPECT_GE(slow.gradients, 490);
    } else {
      EXPECT_LT(c.Now() - from, 500 * 2 * kBarrier);
      EXPECT_GT(slow.gradients, 100);
      EXPECT_GE(slow.gauges["q"], 0.6);
      EXPECT_GT(c.node(0).Status().gradients, 450);
      EXPECT_LE(c.node(0).Status().gauges["step_size"], 0.05 * 0.5);
    }
    if (GetParam() == "async-dsgd") {
      EXPECT_EQ(slow.gauges["staleness"], 3);
    }
  });
}

TEST_P(NodeClocked, TrainsThroughLostLinksAndACrash) {
  ClusterOptions options = Options(42);
  options.network.path.jitter = absl::Milliseconds(10);
  options.network.path.reset_probability = 0.002;
  RunTwice(options, [&](SimCluster& c) {
    c.Run(Plan(c, GetParam()));
    c.RunFor(absl::Seconds(10));
    const int64_t before = c.step(0);
    c.Crash(1);
    c.RunFor(absl::Seconds(3));
    EXPECT_GT(c.step(0), before + 10);
    c.Restart(1);
    ASSERT_TRUE(c.node(1).Start().ok());
    c.RunFor(absl::Seconds(15));
    const double start = Loss(std::vector<float>(20, 0.0F));
    for (int64_t i = 0; i < kNodes; ++i) {
      EXPECT_EQ(c.node(i).phase(), ports::Phase::kTraining);
      EXPECT_LT(Loss(c.parameters(i)), 0.5 * start) << "node " << i;
      EXPECT_EQ(c.node(i).Status().rejected.count("bad-message"), 0U);
    }
    EXPECT_GT(c.log(0).Count<ports::LinkDown>(), 2);
  });
}

INSTANTIATE_TEST_SUITE_P(Algorithms, NodeClocked,
                         testing::Values("async-dsgd", "barrier-dsgd",
                                         "sync-dsgd"),
                         [](const auto& info) {
                           return info.param.substr(0, info.param.find('-'));
                         });

ClusterOptions Witnesses(uint64_t seed) {
  ClusterOptions options;
  options.nodes = 2;
  options.seed = seed;
  options.gradient_delay = [](int64_t i) {
    return i == 1 ? 2.5 * kBarrier : kBarrier / 2;
  };
  options.learner = [](int64_t) { return std::make_unique<UnitLearner>(); };
  return options;
}

core::RunPlan WitnessPlan(const SimCluster& c) {
  return c.MakePlan("async-dsgd",
                    {{"eta", 0.125},
                     {"gamma_max", absl::ToDoubleSeconds(kBarrier)},
                     {"measure_q", false}});
}

// The gradient is at the model it began with, although the model moved.
TEST(NodeClockedCopies, AGradientIsOfTheModelItBeganWith) {
  RunTwice(Witnesses(43), [&](SimCluster& c) {
    c.Run(WitnessPlan(c));
    auto& learner = static_cast<UnitLearner&>(c.learner(1));
    std::vector<std::vector<float>> before;
    size_t moved = 0;
    size_t seen = 0;
    for (int tick = 0; tick < 1000; ++tick) {
      c.RunFor(absl::Milliseconds(1));
      if (c.node(1).phase() != ports::Phase::kTraining) continue;
      if (learner.models.size() > seen) {
        seen = learner.models.size();
        const std::vector<float>& used = learner.models.back();
        EXPECT_TRUE(std::find(before.begin(), before.end(), used) !=
                    before.end());
        if (used != c.parameters(1)) ++moved;
      }
      before.push_back(c.parameters(1));
    }
    EXPECT_GT(seen, 10U);
    EXPECT_EQ(moved, seen);  // it has mixed twice meanwhile
  });
}

// What a gradient does to module buffers is not lost and not undone by mixing.
TEST(NodeClockedCopies, BuffersKeepWhatGradientsDidToThem) {
  ClusterOptions options = Witnesses(44);
  options.nodes = 1;
  RunTwice(options, [&](SimCluster& c) {
    core::RunPlan plan = WitnessPlan(c);
    plan.stop.steps = 20;
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(20));
    UnitLearner learner;
    const auto [w, b] = InitialModel(learner, plan);
    int64_t copies = 0;
    c.node(0).CopyModel([&](absl::StatusOr<SnapshotPtr> model) {
      ASSERT_TRUE(model.ok());
      ++copies;
      for (size_t l = 0; l < 2; ++l) {
        EXPECT_NEAR((*model)->buffers[l], b[l] + 20, 1e-4);
      }
      for (size_t l = 0; l < 10; ++l) {
        EXPECT_NEAR((*model)->parameters[l], w[l] - 20 * 0.125, 1e-4);
      }
    });
    EXPECT_EQ(copies, 1);
  });
}

// The algorithm is changed, the run paused and gone on with, while a gradient
// is under way.
TEST(NodeClockedCopies, APlanOrAPauseMayComeDuringAGradient) {
  RunTwice(Witnesses(45), [&](SimCluster& c) {
    core::RunPlan plan = WitnessPlan(c);
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(10));
    const core::KnobValues clocked = plan.algorithm.knobs;
    for (int turn = 0; turn < 6; ++turn) {
      ++plan.version;
      plan.algorithm.name = turn % 2 == 0 ? "d-psgd" : "async-dsgd";
      plan.algorithm.knobs = turn % 2 == 0 ? core::KnobValues{} : clocked;
      c.SetPlanEverywhere(plan);
      const int64_t before = c.LowestStep();
      ASSERT_TRUE(c.RunUntil([&] { return c.LowestStep() > before + 10; }));
      c.RunFor(absl::Milliseconds(7 * turn));
    }
    const size_t gradients =
        static_cast<UnitLearner&>(c.learner(1)).models.size();
    ASSERT_TRUE(c.node(1).Pause().ok());
    ASSERT_TRUE(
        c.RunUntil([&] { return c.node(1).phase() == ports::Phase::kPaused; }));
    const int64_t paused = c.step(1);
    c.RunFor(absl::Seconds(1));
    EXPECT_EQ(c.step(1), paused);
    EXPECT_LE(static_cast<UnitLearner&>(c.learner(1)).models.size(),
              gradients + 1);
    ASSERT_TRUE(c.node(1).Resume().ok());
    ASSERT_TRUE(c.RunUntil([&] { return c.step(1) > paused + 20; }));
  });
}

// Training that fails in a pause or in a round degrades the node, which mixes
// on and recovers.
TEST(NodeClockedCopies, FailingGradientsDoNotStopTheRounds) {
  RunTwice(Witnesses(46), [&](SimCluster& c) {
    c.Run(WitnessPlan(c));
    ASSERT_TRUE(c.RunToStep(10));
    c.trainer(1).FailWith(absl::InternalError("no memory"));
    ASSERT_TRUE(c.RunUntil(
        [&] { return c.node(1).phase() == ports::Phase::kDegraded; }));
    const int64_t before = c.node(1).algorithm()->step();
    ASSERT_TRUE(c.RunUntil(
        [&] { return c.node(1).algorithm()->step() > before + 20; }));
    c.trainer(1).FailWith(absl::OkStatus());
    ASSERT_TRUE(c.RunUntil(
        [&] { return c.node(1).phase() == ports::Phase::kTraining; }));
    // And one that fails while the node is paused.
    ASSERT_TRUE(c.node(1).Pause().ok());
    c.trainer(1).FailWith(absl::DataLossError("not finite"));
    c.RunFor(absl::Seconds(1));
    EXPECT_EQ(c.node(1).phase(), ports::Phase::kPaused);
    c.trainer(1).FailWith(absl::OkStatus());
    ASSERT_TRUE(c.node(1).Resume().ok());
    const int64_t resumed = c.step(1);
    ASSERT_TRUE(c.RunUntil([&] { return c.step(1) > resumed + 20; }));
    EXPECT_EQ(c.node(1).phase(), ports::Phase::kTraining);
  });
}

}  // namespace
}  // namespace dfl::runtime
