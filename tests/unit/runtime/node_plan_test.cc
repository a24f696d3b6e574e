// Orders and plans while a run goes on: adopted at boundaries, visible in the
// status, refused across runs, models and algorithms.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/distributions.h"
#include "daemon/simports/analytic_learner.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

using ports::Phase;

int64_t NeighbourCount(const NodeStatus& status) {
  int64_t count = 0;
  for (const PeerStatus& peer : status.peers) count += peer.neighbour ? 1 : 0;
  return count;
}

TEST(NodePlan, TopologyChangesWhileTraining) {
  ClusterOptions options;
  options.seed = 41;
  options.nodes = 5;
  RunTwice(options, [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("d-psgd");
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(20));
    EXPECT_EQ(NeighbourCount(c.node(0).Status()), 4);
    plan.version = 2;
    plan.topology.kind = "ring";
    c.SetPlanEverywhere(plan);
    const int64_t step = c.step(0);
    ASSERT_TRUE(c.RunToStep(step + 30));
    for (int64_t i = 0; i < 5; ++i) {
      const NodeStatus status = c.node(i).Status();
      EXPECT_EQ(status.plan_version, 2U);
      EXPECT_EQ(status.topology, "ring");
      EXPECT_EQ(NeighbourCount(status), 2);
      EXPECT_EQ(status.phase, Phase::kTraining);
      EXPECT_NEAR(status.peers.empty() ? 0 : 1, 1, 0);
      const auto adopted = c.log(i).Of<ports::PlanAdopted>();
      ASSERT_EQ(adopted.size(), 2U);
      EXPECT_EQ(adopted[1].version, 2U);
      EXPECT_GE(adopted[1].step, 20);
    }
    // On a ring of 5, n0 hears of n1 and n4 only.
    const int64_t from_2 = c.node(0).Status().peers[1].models_received;
    c.RunFor(absl::Seconds(1));
    EXPECT_EQ(c.node(0).Status().peers[1].models_received, from_2);
    EXPECT_EQ(c.node(0).Status().peers[1].node, c.id(2));
  });
}

TEST(NodePlan, AChangeWaitsForTheBoundaryAndIsSeenWaiting) {
  ClusterOptions options;
  options.seed = 42;
  options.nodes = 1;
  options.gradient_delay = [](int64_t) { return absl::Seconds(1); };
  RunTwice(options, [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("local", {{"eta", 0.1}});
    c.Run(plan);
    c.RunFor(absl::Milliseconds(2500));
    plan.version = 7;
    plan.algorithm.knobs["eta"] = 0.2;
    ASSERT_TRUE(c.SetPlan(0, plan).ok());
    NodeStatus status = c.node(0).Status();
    EXPECT_EQ(status.plan_version, 1U);
    EXPECT_EQ(status.pending_plan_version, 7U);
    EXPECT_EQ(c.node(0).plan()->version, 7U);
    c.RunFor(absl::Milliseconds(400));
    EXPECT_EQ(c.node(0).Status().pending_plan_version, 7U);
    c.RunFor(absl::Milliseconds(200));
    status = c.node(0).Status();
    EXPECT_EQ(status.plan_version, 7U);
    EXPECT_EQ(status.pending_plan_version, 0U);
    EXPECT_EQ(status.knobs["eta"], core::KnobValue(0.2));
    EXPECT_EQ(status.step, 3);
  });
}

TEST(NodePlan, KnobsOfPameChangeWhileTraining) {
  ClusterOptions options;
  options.seed = 43;
  options.nodes = 5;
  RunTwice(options, [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("pame", {{"nu", 0.25},
                                             {"kappa", core::IntRange{2, 2}},
                                             {"sigma0", 2.0},
                                             {"gamma", 1.0}});
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(20));
    auto gauges = c.node(0).Status().gauges;
    EXPECT_EQ(gauges["m"], 1);
    EXPECT_EQ(gauges["kappa"], 2);
    EXPECT_EQ(gauges["sigma"], 2);
    plan.version = 2;
    plan.algorithm.knobs["nu"] = 1.0;
    plan.algorithm.knobs["kappa"] = core::IntRange{4, 4};
    plan.algorithm.knobs["sigma0"] = 6.0;
    plan.nodes[c.id(1)].knobs["nu"] = 0.5;
    c.SetPlanEverywhere(plan);
    ASSERT_TRUE(c.RunToStep(c.step(0) + 20));
    gauges = c.node(0).Status().gauges;
    EXPECT_EQ(gauges["m"], 4);
    EXPECT_EQ(gauges["kappa"], 4);
    EXPECT_EQ(gauges["sigma"], 6);
    EXPECT_EQ(c.node(1).Status().gauges["m"], 2);
  });
}

TEST(NodePlan, TheAlgorithmChangesAndStepsGoOn) {
  ClusterOptions options;
  options.seed = 44;
  RunTwice(options, [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("pame");
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(30));
    plan.version = 2;
    plan.algorithm = core::AlgorithmSpec{"d-psgd", {}};
    const int64_t step = c.step(0);
    // Node by node, a second apart: nobody stands still meanwhile.
    const absl::Time from = c.Now();
    for (int64_t i = 0; i < 4; ++i) {
      ASSERT_TRUE(c.SetPlan(i, plan).ok());
      c.RunFor(absl::Seconds(1));
    }
    for (int64_t i = 0; i < 4; ++i) {
      const NodeStatus status = c.node(i).Status();
      EXPECT_EQ(status.algorithm, "d-psgd");
      EXPECT_GT(status.step, step + 30);
      EXPECT_EQ(status.gauges.count("sigma"), 0U);
      EXPECT_LE(c.LongestGap(i, from, c.Now()), absl::Seconds(2.1));
    }
    const int64_t received = c.node(0).Status().models_received;
    c.RunFor(absl::Seconds(1));
    EXPECT_GT(c.node(0).Status().models_received, received + 100);
    EXPECT_EQ(c.log(0).Count<ports::StateTaken>(), 0);
  });
}

TEST(NodePlan, PauseResumeStopStart) {
  ClusterOptions options;
  options.seed = 45;
  RunTwice(options, [](SimCluster& c) {
    EXPECT_TRUE(absl::IsFailedPrecondition(c.node(0).Start()));
    EXPECT_TRUE(absl::IsFailedPrecondition(c.node(0).Pause()));
    EXPECT_TRUE(absl::IsFailedPrecondition(c.node(0).Stop()));
    c.Run(c.MakePlan("pame"));
    ASSERT_TRUE(c.RunToStep(20));

    ASSERT_TRUE(c.node(0).Pause().ok());
    EXPECT_EQ(c.node(0).phase(), Phase::kTraining);  // until the boundary
    c.RunFor(absl::Milliseconds(50));
    EXPECT_EQ(c.node(0).phase(), Phase::kPaused);
    const int64_t paused_at = c.step(0);
    const int64_t sent = c.node(0).Status().models_sent;
    c.RunFor(absl::Seconds(3));
    EXPECT_EQ(c.step(0), paused_at);
    EXPECT_GT(c.node(0).Status().models_sent, sent);  // answers on
    EXPECT_EQ(c.node(0).Status().steps_per_second, 0);

    ASSERT_TRUE(c.node(0).Resume().ok());
    c.RunFor(absl::Seconds(1));
    EXPECT_GT(c.step(0), paused_at + 50);

    ASSERT_TRUE(c.node(0).Stop().ok());
    c.RunFor(absl::Milliseconds(50));
    EXPECT_EQ(c.node(0).phase(), Phase::kStopped);
    EXPECT_TRUE(c.node(0).Stop().ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(c.node(0).Pause()));
    const int64_t stopped_at = c.step(0);
    ASSERT_TRUE(c.node(0).Start().ok());
    c.RunFor(absl::Seconds(1));
    EXPECT_EQ(c.node(0).phase(), Phase::kTraining);
    EXPECT_GT(c.step(0), stopped_at + 50);
  });
}

TEST(NodePlan, RestsAndGoesOnUnlessSomebodyPausedItMeanwhile) {
  ClusterOptions options;
  options.seed = 46;
  RunTwice(options, [](SimCluster& c) {
    c.node(0).Rest("hot");  // it does not train
    c.Run(c.MakePlan("pame"));
    ASSERT_TRUE(c.RunToStep(20));
    c.node(0).Rest("hot");
    c.RunFor(absl::Milliseconds(50));
    EXPECT_EQ(c.node(0).phase(), Phase::kPaused);
    EXPECT_EQ(c.node(0).Status().phase_reason, "hot");
    const int64_t rested_at = c.step(0);
    c.RunFor(absl::Seconds(1));
    EXPECT_EQ(c.step(0), rested_at);
    EXPECT_GT(c.step(1), rested_at + 50) << "nobody waits for it";
    c.node(0).EndRest();
    c.RunFor(absl::Seconds(1));
    EXPECT_GT(c.step(0), rested_at + 50);

    // A rest that ends before the boundary came is none.
    c.node(0).Rest("hot");
    c.node(0).EndRest();
    c.RunFor(absl::Milliseconds(50));
    EXPECT_EQ(c.node(0).phase(), Phase::kTraining);

    c.node(0).Rest("hot");
    c.RunFor(absl::Milliseconds(50));
    ASSERT_TRUE(c.node(0).Pause().ok());
    EXPECT_EQ(c.node(0).Status().phase_reason, "paused by hand");
    c.node(0).EndRest();
    c.RunFor(absl::Milliseconds(50));
    EXPECT_EQ(c.node(0).phase(), Phase::kPaused);
    ASSERT_TRUE(c.node(0).Resume().ok());
    c.RunFor(absl::Milliseconds(50));

    // One who was ordered to train is no longer at rest.
    c.node(0).Rest("hot");
    c.RunFor(absl::Milliseconds(50));
    ASSERT_TRUE(c.node(0).Start().ok());
    c.RunFor(absl::Milliseconds(50));
    EXPECT_EQ(c.node(0).phase(), Phase::kTraining);
    c.node(0).Rest("hot");
    c.RunFor(absl::Milliseconds(50));
    ASSERT_TRUE(c.node(0).Stop().ok());
    c.node(0).EndRest();
    EXPECT_EQ(c.node(0).phase(), Phase::kStopped);
  });
}

TEST(NodePlan, StoppingAJoinerEndsTheSearch) {
  ClusterOptions options;
  options.seed = 46;
  options.nodes = 2;
  RunTwice(options, [](SimCluster& c) {
    c.SetPlanEverywhere(c.MakePlan("d-psgd"));
    c.Crash(0);
    ASSERT_TRUE(c.node(1).Start().ok());
    ASSERT_TRUE(c.node(1).Stop().ok());
    c.RunFor(absl::Seconds(5));
    EXPECT_EQ(c.node(1).phase(), Phase::kStopped);
    // A model brought in by hand, then started.
    auto model = std::make_shared<Snapshot>();
    model->parameters.assign(1000, 3.0F);
    model->buffers.assign(7, 1.0F);
    bool replaced = false;
    c.node(1).ReplaceModel(model, [&](absl::Status status) {
      EXPECT_TRUE(status.ok()) << status;
      replaced = true;
    });
    EXPECT_TRUE(replaced);
    ASSERT_TRUE(c.node(1).Resume().ok());
    c.RunFor(absl::Seconds(1));
    EXPECT_GT(c.step(1), 50);
    EXPECT_EQ(c.parameters(1)[0], 3.0F);
  });
}

TEST(NodePlan, ModelsAreCopiedAndReplacedAtBoundaries) {
  ClusterOptions options;
  options.seed = 47;
  options.nodes = 1;
  RunTwice(options, [](SimCluster& c) {
    bool refused = false;
    c.node(0).CopyModel([&](absl::StatusOr<SnapshotPtr> model) {
      refused = absl::IsFailedPrecondition(model.status());
    });
    EXPECT_TRUE(refused);
    c.Run(c.MakePlan("local"));
    ASSERT_TRUE(c.RunToStep(10));
    SnapshotPtr copy;
    c.node(0).CopyModel(
        [&](absl::StatusOr<SnapshotPtr> model) { copy = *model; });
    ASSERT_NE(copy, nullptr);  // nothing moves in a gradient of local SGD
    EXPECT_EQ(copy->step, c.step(0));

    auto wrong = std::make_shared<Snapshot>();
    wrong->parameters.assign(3, 0.0F);
    absl::Status status;
    c.node(0).ReplaceModel(wrong, [&](absl::Status s) { status = s; });
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;

    auto model = std::make_shared<Snapshot>();
    model->parameters.assign(1000, 5.0F);
    model->buffers.assign(7, 6.0F);
    bool done = false;
    c.RunFor(absl::Milliseconds(5));  // in the middle of a gradient
    c.node(0).ReplaceModel(model, [&](absl::Status s) {
      EXPECT_TRUE(s.ok());
      done = true;
    });
    EXPECT_FALSE(done);
    EXPECT_NE(c.parameters(0)[0], 5.0F);
    ASSERT_TRUE(c.RunUntil([&] { return done; }, absl::Milliseconds(11)));
    EXPECT_EQ(c.parameters(0)[0], 5.0F);
    c.RunFor(absl::Seconds(1));
    EXPECT_EQ(c.parameters(0)[999], 5.0F);  // the gradient is zero
  });
}

// A model for the old run must not be put into the new one.
TEST(NodePlan, WorkForTheOldModelIsDoneBeforeANewRunIsTakenOver) {
  ClusterOptions options;
  options.seed = 48;
  options.nodes = 1;
  int made = 0;
  options.learner = [&made](int64_t) {
    return std::make_unique<simports::FakeLearner>(made++ % 2 == 0 ? 1000 : 10,
                                                   0);
  };
  RunTwice(options, [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("local");
    c.Run(plan);
    c.RunFor(absl::Milliseconds(105));
    auto model = std::make_shared<Snapshot>();
    model->parameters.assign(1000, 5.0F);
    int done = 0;
    c.node(0).ReplaceModel(model, [&](absl::Status s) {
      EXPECT_TRUE(s.ok());
      ++done;
    });
    plan.run_id = "run-2";
    plan.version = 2;
    ASSERT_TRUE(c.SetPlan(0, plan, /*fresh=*/true).ok());
    c.RunFor(absl::Milliseconds(20));
    EXPECT_EQ(done, 1);
    EXPECT_EQ(c.node(0).phase(), Phase::kIdle);
    EXPECT_EQ(c.node(0).Status().run_id, "run-2");
    EXPECT_EQ(c.parameters(0).size(), 10U);
    EXPECT_EQ(c.step(0), 0);
    ASSERT_TRUE(c.node(0).Start().ok());
    c.RunFor(absl::Seconds(1));
    EXPECT_GT(c.step(0), 50);
  });
}

// ------------------------------------------------ evaluation and stopping ----

constexpr int64_t kClasses = 3;
constexpr int64_t kWidth = 4;

// Three clouds that a linear model tells apart.
std::shared_ptr<simports::Softmax> Clouds(uint64_t seed, int64_t rows,
                                          std::vector<int64_t>* labels) {
  Rng rng(seed);
  std::vector<double> x;
  labels->clear();
  for (int64_t r = 0; r < rows; ++r) {
    labels->push_back(r % kClasses);
    for (int64_t l = 0; l < kWidth; ++l) {
      x.push_back(Normal(rng) + (l == r % kClasses ? 3 : 0));
    }
  }
  return std::make_shared<simports::Softmax>(x, *labels, kClasses);
}

ClusterOptions CloudOptions(uint64_t seed) {
  ClusterOptions options;
  options.seed = seed;
  options.nodes = 3;
  options.learner = [](int64_t i) {
    std::vector<int64_t> labels;
    auto train = Clouds(100 + i, 90, &labels);
    auto test = Clouds(7, 200, &labels);
    simports::AnalyticLearnerOptions learner;
    learner.kind = "softmax";
    learner.seed = i;
    return std::make_unique<simports::AnalyticLearner>(
        learner, train, simports::SoftmaxTest(test, labels, kClasses));
  };
  return options;
}

TEST(NodePlan, StopsAboveAnAccuracyAndEvaluatesAllRowsAtTheEnd) {
  RunTwice(CloudOptions(51), [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("d-psgd", {{"eta", 0.05}});
    plan.evaluation.every_steps = 10;
    plan.evaluation.examples = 50;
    plan.stop.accuracy_above = 0.9;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    for (int64_t i = 0; i < 3; ++i) {
      const auto evaluated = c.log(i).Of<ports::Evaluated>();
      ASSERT_GE(evaluated.size(), 2U);
      for (size_t e = 0; e + 1 < evaluated.size(); ++e) {
        EXPECT_EQ(evaluated[e].result.rows, 50);
        EXPECT_EQ(evaluated[e].step, static_cast<int64_t>(10 * (e + 1)));
      }
      const NodeStatus status = c.node(i).Status();
      EXPECT_EQ(evaluated.back().result.rows, 200);
      EXPECT_EQ(status.evaluation.rows, 200);
      EXPECT_EQ(status.evaluated_step, status.step);
      EXPECT_GT(status.evaluation.accuracy.value_or(0), 0.8);
      EXPECT_GT(status.evaluation.macro_f1.value_or(0), 0.8);
      EXPECT_NE(status.phase_reason.find("accuracy"), std::string::npos);
    }
  });
}

TEST(NodePlan, StopsAfterStepsAndGoesOnWhenTheLimitIsRaised) {
  RunTwice(CloudOptions(52), [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("pame", {{"nu", 1.0}});
    plan.stop.steps = 40;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(c.step(i), 40);
      EXPECT_EQ(c.log(i).Count<ports::Evaluated>(), 1);
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(c.node(0).Start()));
    plan.version = 2;
    plan.stop.steps = 60;
    plan.evaluation.every_steps = 5;
    c.SetPlanEverywhere(plan);
    EXPECT_EQ(c.node(0).Status().plan_version, 2U);  // at once: it stands
    c.StartAll();
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    EXPECT_EQ(c.step(0), 60);
    // 45, 50, 55 by period; 60 over all rows.
    EXPECT_EQ(c.log(0).Count<ports::Evaluated>(), 1 + 4);
  });
}

TEST(NodePlan, StopsAfterATimeOfTraining) {
  ClusterOptions options;
  options.seed = 53;
  RunTwice(options, [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("pame");
    plan.stop.time = absl::Seconds(2);
    c.Run(plan);
    c.RunFor(absl::Seconds(1));
    ASSERT_TRUE(c.node(0).Pause().ok());
    c.RunFor(absl::Seconds(5));
    EXPECT_EQ(c.node(0).phase(), Phase::kPaused);
    EXPECT_EQ(c.node(1).phase(), Phase::kFinished);
    ASSERT_TRUE(c.node(0).Resume().ok());
    const absl::Time resumed = c.Now();
    ASSERT_TRUE(
        c.RunUntil([&] { return c.node(0).phase() == Phase::kFinished; }));
    EXPECT_NEAR(absl::ToDoubleSeconds(c.Now() - resumed), 1.0, 0.1);
  });
}

TEST(NodePlan, AJumpNeverPassesTheStopRule) {
  ClusterOptions options;
  options.seed = 54;
  options.gradient_delay = [](int64_t i) {
    return absl::Milliseconds(i == 0 ? 100 : 10);
  };
  RunTwice(options, [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("d-psgd");
    plan.deadline.exchange = absl::Milliseconds(20);
    plan.stop.steps = 77;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(c.step(i), 77);
    EXPECT_LT(c.node(0).Status().gradients, 77);
  });
}

TEST(NodePlan, ANodeThatIsNoMemberIsTold) {
  ClusterOptions options;
  options.seed = 55;
  options.nodes = 2;
  SimCluster c(options);
  core::RunPlan plan = c.MakePlan("pame");
  plan.members.pop_back();
  EXPECT_TRUE(c.SetPlan(0, plan).ok());
  EXPECT_TRUE(absl::IsNotFound(c.SetPlan(1, plan)));
  EXPECT_EQ(c.node(1).plan(), nullptr);
}

}  // namespace
}  // namespace dfl::runtime
