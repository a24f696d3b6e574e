// DRACO on whole nodes: nobody waits, updates age on the way, hubs unify.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/simports/analytic_learner.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/least_squares.h"
#include "tests/unit/runtime/sim_cluster.h"
#include "tests/unit/runtime/unit_learner.h"

namespace dfl::runtime {
namespace {

constexpr int64_t kNodes = 4;
constexpr int64_t kSlow = 3;

class NodeDraco : public testing::TestWithParam<std::string> {
 protected:
  // A slow node; the first problem is the test of all.
  ClusterOptions Options(uint64_t seed) const {
    simports::AnalyticTest test;
    test.problem = problems_.all[0];
    ClusterOptions options = LeastSquaresCluster(problems_, seed, test);
    options.gradient_delay = [](int64_t i) {
      return absl::Milliseconds(i == kSlow ? 80 : 10);
    };
    return options;
  }

  static core::RunPlan Plan(const SimCluster& c, core::KnobValues knobs = {}) {
    knobs.insert({{"eta", 0.02}, {"B", int64_t{2}}, {"P", 2.0}});
    core::RunPlan plan = c.MakePlan("draco", std::move(knobs));
    plan.batch_size = kRows;
    return plan;
  }

  const Problems problems_{kNodes};
};

core::KnobValues Schedule(const std::string& send) {
  return {{"send", send}, {"send_every", 0.05}};
}

TEST_P(NodeDraco, TrainsWithoutWaitingForASlowNode) {
  const double start = problems_.Loss(std::vector<float>(kParameters, 0.0F));
  const double least = problems_.Least();
  RunTwice(Options(71), [&](SimCluster& c) {
    core::RunPlan plan = Plan(c, Schedule(GetParam()));
    plan.topology.kind = "ring";
    plan.stop.time = absl::Seconds(20);
    plan.evaluation.every_steps = 100;
    plan.evaluation.examples = 0;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    // A training is two gradients, and nobody waits between two of them.
    EXPECT_GE(c.step(0), 950);
    EXPECT_LE(c.step(kSlow), 125);
    EXPECT_GE(c.step(kSlow), 115);
    for (int64_t i = 0; i < kNodes; ++i) {
      auto status = c.node(i).Status();
      EXPECT_LT(problems_.Loss(c.parameters(i)), least + 0.2 * (start - least))
          << "node " << i;
      EXPECT_GE(status.gauges["accepted"],
                GetParam() == "on-update" ? 500 : 150);
      EXPECT_GE(status.gauges["unified"], 8);
      EXPECT_EQ(status.step, 2 * c.step(i));
      EXPECT_EQ(status.gradients, status.step);
      EXPECT_GE(c.log(i).Count<ports::Evaluated>(), i == kSlow ? 2 : 15);
      EXPECT_EQ(c.log(i).Count<ports::LearnerFailed>(), 0);
      EXPECT_TRUE(status.rejected.empty());
    }
  });
}

TEST_P(NodeDraco, TrainsThroughLostLinksAndACrash) {
  const double start = problems_.Loss(std::vector<float>(kParameters, 0.0F));
  ClusterOptions options = Options(72);
  options.network.path.jitter = absl::Milliseconds(20);
  options.network.path.reset_probability = 0.002;
  RunTwice(options, [&](SimCluster& c) {
    core::RunPlan plan = Plan(c, Schedule(GetParam()));
    plan.topology.kind = "ring";
    c.Run(plan);
    c.RunFor(absl::Seconds(5));
    const int64_t before = c.step(0);
    c.Crash(2);
    c.RunFor(absl::Seconds(3));
    EXPECT_GT(c.step(0), before + 100);
    c.Restart(2);
    ASSERT_TRUE(c.node(2).Start().ok());
    c.RunFor(absl::Seconds(10));
    EXPECT_EQ(c.log(2).Count<ports::StateTaken>(), 1);
    for (int64_t i = 0; i < kNodes; ++i) {
      EXPECT_EQ(c.node(i).phase(), ports::Phase::kTraining);
      EXPECT_LT(problems_.Loss(c.parameters(i)), 0.5 * start) << "node " << i;
      auto status = c.node(i).Status();
      EXPECT_EQ(status.rejected.count("bad-message"), 0U);
      EXPECT_GT(status.gauges["unified"], 4);  // the joiner too
    }
    EXPECT_GT(c.log(0).Count<ports::LinkDown>(), 2);
  });
}

INSTANTIATE_TEST_SUITE_P(Schedules, NodeDraco,
                         testing::Values("on-update", "every", "poisson"),
                         [](const auto& info) {
                           return info.param == "on-update" ? "on_update"
                                                            : info.param;
                         });

TEST_F(NodeDraco, RunsOnADirectedRing) {
  RunTwice(Options(73), [&](SimCluster& c) {
    core::RunPlan plan = Plan(c);
    plan.topology.kind = "explicit";
    plan.topology.directed = true;
    for (int64_t i = 0; i < kNodes; ++i) {
      plan.topology.edges.emplace_back(c.id(i), c.id((i + 1) % kNodes));
    }
    c.Run(plan);
    c.RunFor(absl::Seconds(10));
    for (int64_t i = 0; i < kNodes; ++i) {
      auto status = c.node(i).Status();
      // From the one before it alone, and what the hub says on its way round.
      EXPECT_GT(status.gauges["accepted"], 50);
      EXPECT_GE(status.gauges["unified"], 4);
      EXPECT_TRUE(status.rejected.empty());
    }
  });
}

// A star whose leaves are far from each other: the hub's model gets to all, and
// is the same on all.
TEST(NodeDracoUnification, ReachesEveryNodeAlongTheEdges) {
  for (const auto values : {core::ValueType::kFp32, core::ValueType::kInt8}) {
    ClusterOptions options;
    options.seed = 74;
    options.nodes = 5;
    RunTwice(options, [&](SimCluster& c) {
      core::RunPlan plan = c.MakePlan("draco", {{"P", 1.0}});
      plan.topology.kind = "path";  // the hubs are n1, n2 and n3
      plan.codec.format.values = values;
      c.SetPlanEverywhere(plan);
      for (int64_t i = 0; i < 5; ++i) {
        auto model = std::make_shared<Snapshot>();
        model->parameters.assign(1000, static_cast<float>(i));
        model->buffers.assign(7, static_cast<float>(-i));
        c.node(i).ReplaceModel(model, [](const absl::Status& status) {
          EXPECT_TRUE(status.ok()) << status;
        });
      }
      c.StartAll();
      c.RunFor(absl::Seconds(0.9));
      EXPECT_NE(c.parameters(0), c.parameters(4));
      const std::vector<float> hub = c.parameters(2);  // C[1 mod 3]
      c.RunFor(absl::Seconds(0.7));
      for (int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(c.node(i).Status().gauges["unified"], 1);
        for (size_t l = 0; l < hub.size(); ++l) {
          ASSERT_NEAR(c.parameters(i)[l], hub[l],
                      values == core::ValueType::kInt8 ? 0.1 : 1e-6);
        }
        c.node(i).CopyModel([&](absl::StatusOr<SnapshotPtr> model) {
          ASSERT_TRUE(model.ok());
          EXPECT_EQ((*model)->buffers[0], -2);
        });
      }
    });
  }
}

// Agreement is a fixed point: no gradients, no updates, equal models.
TEST(NodeDracoUnification, EqualModelsStayBitIdentical) {
  ClusterOptions options;
  options.seed = 75;
  RunTwice(options, [&](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("draco", {{"P", 0.3}});
    plan.codec.format.values = core::ValueType::kInt8;
    plan.stop.rounds = 50;
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(50));
    simports::FakeLearner learner(1000, 7);
    const auto [w, b] = InitialModel(learner, plan);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(c.parameters(i), w) << "node " << i;
      EXPECT_GT(c.node(i).Status().gauges["accepted"], 45);
      EXPECT_GE(c.node(i).Status().gauges["unified"], 5);
    }
  });
}

ClusterOptions Witnesses(uint64_t seed) {
  ClusterOptions options;
  options.nodes = 2;
  options.seed = seed;
  options.learner = [](int64_t) { return std::make_unique<UnitLearner>(); };
  return options;
}

// Each batch of a training is at y, which goes on from the model that it began
// with, while updates of the neighbour move the model.
TEST(NodeDracoTraining, AllBatchesAreAtTheReferenceModel) {
  RunTwice(Witnesses(76), [&](SimCluster& c) {
    c.Run(c.MakePlan("draco", {{"eta", 0.125}, {"B", int64_t{4}}, {"P", 0.0}}));
    ASSERT_TRUE(c.RunToStep(10));
    const auto& models = static_cast<UnitLearner&>(c.learner(0)).models;
    ASSERT_GE(models.size(), 40U);
    bool moved = false;
    for (size_t g = 0; g + 1 < 40; ++g) {
      const float step = models[g][0] - models[g + 1][0];
      if (g % 4 < 3) {
        EXPECT_NEAR(step, 0.125, 1e-5) << g;
      } else {  // the next begins at theta, with the neighbour's updates
        moved = moved || std::abs(step - 0.125) > 0.1;
      }
    }
    EXPECT_TRUE(moved);
  });
}

// Own updates and the neighbour's are all there, once each.
TEST(NodeDracoTraining, EveryUpdateIsAppliedOnce) {
  for (const double window : {0.0, 0.03}) {
    ClusterOptions options = Witnesses(77);
    options.network.path.jitter = absl::Milliseconds(5);
    options.network.path.reset_probability = 0.005;
    RunTwice(options, [&](SimCluster& c) {
      core::RunPlan plan = c.MakePlan(
          "draco",
          {{"eta", 0.125}, {"B", int64_t{1}}, {"P", 0.0}, {"window", window}});
      c.Run(plan);
      c.RunFor(absl::Seconds(5));
      ASSERT_TRUE(c.node(0).Pause().ok());
      ASSERT_TRUE(c.RunUntil(
          [&] { return c.node(0).phase() == ports::Phase::kPaused; }));
      c.RunFor(absl::Seconds(1));
      // A pause holds the model still.
      const std::vector<float> paused = c.parameters(0);
      c.RunFor(absl::Seconds(1));
      EXPECT_EQ(c.parameters(0), paused);
      ASSERT_TRUE(c.node(0).Resume().ok());
      const int64_t step = c.step(0);
      ASSERT_TRUE(c.RunUntil([&] { return c.step(0) > step + 2; }));
      auto status = c.node(0).Status();
      UnitLearner learner;
      const auto [w, b] = InitialModel(learner, plan);
      const double applied = (w[0] - c.parameters(0)[0]) / 0.125;
      const double made =
          static_cast<double>(c.step(0)) + status.gauges["accepted"];
      // The last ones may still be in an open window.
      EXPECT_LE(applied, made + 0.01);
      EXPECT_GE(applied, made - (window > 0 ? 6 : 1) - 0.01);
      EXPECT_GT(status.gauges["accepted"], 50);
      EXPECT_LE(status.gauges["accepted"],
                static_cast<double>(c.step(1)) + 0.5);
    });
  }
}

// gamma_max against the time on the way, which a slow link makes long.
TEST(NodeDracoAge, UpdatesThatTakeTooLongAreDropped) {
  for (const double gamma_max : {0.1, 2.0}) {
    ClusterOptions options = Witnesses(78);
    options.network.path.delay = absl::Milliseconds(150);
    RunTwice(options, [&](SimCluster& c) {
      // How long the way is nobody knows of the first one.
      c.Run(c.MakePlan("draco", {{"gamma_max", gamma_max}, {"P", 0.0}}));
      c.RunFor(absl::Seconds(20));
      auto status = c.node(0).Status();
      if (gamma_max < 0.15) {
        EXPECT_LE(status.gauges["accepted"], 1);
        EXPECT_GT(status.gauges["dropped_late"], 10);
      } else {
        EXPECT_GT(status.gauges["accepted"], 10);
        EXPECT_EQ(status.gauges["dropped_late"], 0);
      }
    });
  }
}

// On a link that cannot carry every update the newest replace older ones, but a
// unification is not replaced by them.
TEST(NodeDracoAge, UnificationsGetThroughAFloodOfUpdates) {
  ClusterOptions options;
  options.nodes = 2;
  options.seed = 79;
  options.network.path.rate = 20e3;  // a model takes 0.2 s
  RunTwice(options, [&](SimCluster& c) {
    c.Run(c.MakePlan("draco", {{"B", int64_t{1}}, {"P", 1.0}}));
    c.RunFor(absl::Seconds(20.9));
    for (int64_t i = 0; i < 2; ++i) {
      auto status = c.node(i).Status();
      EXPECT_GE(status.gauges["unified"], 19) << "node " << i;
      EXPECT_GT(status.gauges["accepted"], 40);
      EXPECT_LT(status.gauges["accepted"], 120);
      EXPECT_GT(status.step, 1500);
    }
  });
}

// Knobs, neighbours and the algorithm change while updates are on their way.
TEST(NodeDracoPlan, AdoptsPlansBetweenTrainings) {
  RunTwice(Witnesses(80), [&](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("draco", {{"P", 0.1}});
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(5));
    const std::vector<core::KnobValues> changes = {
        {{"B", int64_t{2}}, {"P", 0.0}},
        {{"send", std::string("every")}, {"send_every", 0.2}},
        {{"send", std::string("poisson")}, {"window", 0.1}, {"P", 0.3}},
        {{"B", int64_t{1}}}};
    for (size_t turn = 0; turn < 12; ++turn) {
      ++plan.version;
      plan.algorithm.name = turn % 3 == 2 ? "d-psgd" : "draco";
      plan.algorithm.knobs =
          turn % 3 == 2 ? core::KnobValues{} : changes[turn % changes.size()];
      c.SetPlanEverywhere(plan);
      const int64_t before = c.LowestStep();
      ASSERT_TRUE(c.RunUntil([&] { return c.LowestStep() > before + 10; }));
      c.RunFor(absl::Milliseconds(7 * turn));
      for (int64_t i = 0; i < 2; ++i) {
        EXPECT_EQ(c.node(i).Status().plan_version, plan.version);
      }
    }
  });
}

TEST(NodeDracoPlan, FailingGradientsDoNotStopTheOthers) {
  RunTwice(Witnesses(81), [&](SimCluster& c) {
    c.Run(c.MakePlan("draco"));
    ASSERT_TRUE(c.RunToStep(5));
    c.trainer(1).FailWith(absl::InternalError("no memory"));
    ASSERT_TRUE(c.RunUntil(
        [&] { return c.node(1).phase() == ports::Phase::kDegraded; }));
    const std::vector<float> before = c.parameters(1);
    c.RunFor(absl::Seconds(3));
    EXPECT_NE(c.parameters(1), before);  // the other's updates
    c.trainer(1).FailWith(absl::OkStatus());
    ASSERT_TRUE(c.RunUntil(
        [&] { return c.node(1).phase() == ports::Phase::kTraining; }));
  });
}

}  // namespace
}  // namespace dfl::runtime
