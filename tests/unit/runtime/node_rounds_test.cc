// The algorithms of synchronous rounds on whole nodes: they train, and go on
// while links are lost, neighbours die and come back.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/simports/analytic_learner.h"
#include "daemon/simports/problems.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/least_squares.h"
#include "tests/unit/runtime/sim_cluster.h"
#include "tests/unit/runtime/unit_learner.h"

namespace dfl::runtime {
namespace {

struct RoundsCase {
  std::string name;
  std::string algorithm;
  core::KnobValues knobs;
};

class Rounds : public testing::TestWithParam<RoundsCase> {
 protected:
  ClusterOptions Options(uint64_t seed) const {
    return LeastSquaresCluster(problems_, seed);
  }

  core::RunPlan Plan(const SimCluster& c) const {
    core::RunPlan plan = c.MakePlan(GetParam().algorithm, GetParam().knobs);
    plan.batch_size = kRows;
    plan.deadline.exchange = absl::Milliseconds(300);
    if (GetParam().algorithm == "fedmid") plan.topology.kind = "star";
    return plan;
  }

  const Problems problems_;
};

TEST_P(Rounds, TrainOnLeastSquares) {
  const double least = problems_.Least();
  RunTwice(Options(31), [&](SimCluster& c) {
    core::RunPlan plan = Plan(c);
    plan.stop.rounds = 300;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(problems_.Loss(c.parameters(i)), least, 0.1) << "node " << i;
      EXPECT_EQ(c.step(i), 300);
      // In round 0 one may not know yet that another trains.
      EXPECT_LE(c.node(i).Status().missed, 1);
      EXPECT_GT(c.node(i).Status().models_received, 290);
    }
  });
}

// Links are reset at odd times, a node dies and comes back from a neighbour's
// model: the others go on, and all end near the optimum.
TEST_P(Rounds, TrainThroughLostLinksAndACrash) {
  const double least = problems_.Least();
  ClusterOptions options = Options(32);
  options.network.path.jitter = absl::Milliseconds(20);
  options.network.path.reset_probability = 0.002;
  RunTwice(options, [&](SimCluster& c) {
    c.Run(Plan(c));
    c.RunFor(absl::Seconds(10));
    const int64_t before = c.step(0);
    c.Crash(2);
    c.RunFor(absl::Seconds(5));
    EXPECT_GT(c.step(0), before + 10);
    c.Restart(2);
    ASSERT_TRUE(c.node(2).Start().ok());
    c.RunFor(absl::Seconds(15));
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(c.node(i).phase(), ports::Phase::kTraining);
      EXPECT_GT(c.step(i), 100) << "node " << i;
      EXPECT_NEAR(problems_.Loss(c.parameters(i)), least, 0.2) << "node " << i;
      EXPECT_EQ(c.node(i).Status().rejected.count("bad-message"), 0U);
    }
    EXPECT_GT(c.log(0).Count<ports::LinkDown>(), 2);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, Rounds,
    testing::Values(
        RoundsCase{"dfedavgm", "dfedavgm", {{"eta", 0.01}, {"theta", 0.5}}},
        RoundsCase{"dfedsam", "dfedsam", {{"eta", 0.01}, {"rho", 0.01}}},
        RoundsCase{"fedavg", "fedavg", {{"eta", 0.05}}},
        RoundsCase{"swarm", "swarm", {{"eta", 0.05}}},
        RoundsCase{"swarm_gradient",
                   "swarm",
                   {{"eta", 0.05}, {"form", std::string("gradient")}}},
        RoundsCase{"fedavgplus",
                   "fedavg+",
                   {{"eta", 0.05}, {"fine_tune_from", int64_t{1000000}}}},
        RoundsCase{"fedmid", "fedmid", {{"eta_c", 0.01}, {"K", int64_t{2}}}},
        RoundsCase{"epidemic", "epidemic", {{"eta", 0.02}}},
        RoundsCase{"epidemic_step_first",
                   "epidemic",
                   {{"eta", 0.02}, {"step_first", true}}}),
    [](const auto& info) { return info.param.name; });

// Agreement is a fixed point, through encoder, decoder and mixing.
class RoundsAgree : public testing::TestWithParam<std::string> {};

TEST_P(RoundsAgree, EqualModelsStayBitIdentical) {
  ClusterOptions options;
  options.seed = 35;
  RunTwice(options, [&](SimCluster& c) {
    core::KnobValues knobs;
    if (GetParam().find("-dsgd") != std::string::npos) {
      if (GetParam() != "sync-dsgd") knobs = {{"gamma_max", 0.02}};
    }
    core::RunPlan plan = c.MakePlan(GetParam(), knobs);
    plan.codec.format.values = core::ValueType::kInt8;
    if (GetParam() == "fedmid") plan.topology.kind = "star";
    if (GetParam() != "swarm" && GetParam() != "fedmid") {
      plan.codec.format.coordinates = core::Coordinates::kRandom;
      plan.codec.rate = 0.3;
    }
    plan.stop.rounds = 50;
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(50));
    simports::FakeLearner learner(1000, 7);
    const auto [w, b] = InitialModel(learner, plan);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(c.parameters(i), w) << "node " << i;
      EXPECT_GE(c.node(i).Status().models_received, 45);
      EXPECT_TRUE(c.node(i).Status().rejected.empty());
      c.node(i).CopyModel([&](absl::StatusOr<SnapshotPtr> model) {
        ASSERT_TRUE(model.ok());
        EXPECT_TRUE(std::equal(b.begin(), b.end(), (*model)->buffers.begin()));
      });
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Algorithms, RoundsAgree,
                         testing::Values("dfedavgm", "dfedsam", "fedavg",
                                         "swarm", "fedavg+", "epidemic",
                                         "fedmid", "async-dsgd", "barrier-dsgd",
                                         "sync-dsgd"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                             if (c == '+') c = 'p';
                           }
                           return name;
                         });

// What is pushed after training is what training gave, parameters and buffers:
// nodes with equal models and equal gradients stay equal.
TEST(RoundsOnNodes, APushAfterTrainingSendsWhatTrainingGave) {
  ClusterOptions options;
  options.seed = 33;
  options.learner = [](int64_t) { return std::make_unique<UnitLearner>(); };
  RunTwice(options, [&](SimCluster& c) {
    core::RunPlan plan = c.MakePlan(
        "dfedavgm", {{"eta", 0.5}, {"theta", 0.0}, {"K", int64_t{2}}});
    plan.stop.rounds = 10;
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(10));
    UnitLearner learner;
    const auto [w, b] = InitialModel(learner, plan);
    for (int64_t i = 0; i < 4; ++i) {
      int64_t copies = 0;
      c.node(i).CopyModel([&](absl::StatusOr<SnapshotPtr> model) {
        ASSERT_TRUE(model.ok());
        ++copies;
        for (size_t l = 0; l < w.size(); ++l) {
          EXPECT_NEAR((*model)->parameters[l], w[l] - 10, 1e-4);
        }
        for (size_t l = 0; l < b.size(); ++l) {
          EXPECT_NEAR((*model)->buffers[l], b[l] + 20, 1e-4);
        }
      });
      EXPECT_EQ(copies, 1);
      EXPECT_EQ(c.node(i).Status().missed, 0);
    }
  });
}

TEST(RoundsOnNodes, SamAsksForTheSameBatchTwice) {
  ClusterOptions options;
  options.nodes = 1;
  options.seed = 34;
  options.learner = [](int64_t) { return std::make_unique<UnitLearner>(); };
  RunTwice(options, [&](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("dfedsam", {{"K", int64_t{2}}});
    plan.stop.rounds = 2;
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(2));
    const auto& requests = static_cast<UnitLearner&>(c.learner(0)).requests;
    ASSERT_EQ(requests.size(), 8U);
    for (size_t q = 0; q < 8; q += 2) {
      EXPECT_FALSE(requests[q].same_batch);
      EXPECT_TRUE(requests[q + 1].same_batch);
      EXPECT_EQ(requests[q].step, requests[q + 1].step);
      if (q == 0) continue;
      EXPECT_GT(requests[q].step, requests[q - 1].step);
    }
  });
}

TEST(RoundsOnNodes, TheLearnerTakesTheSameBatchTwice) {
  const Problems problems;
  simports::AnalyticLearner learner({}, problems.all[0]);
  std::vector<float> w(20, 0.5F);
  std::vector<float> g(20);
  ASSERT_TRUE(learner.Bind(absl::MakeSpan(w), absl::MakeSpan(g), {}).ok());
  ports::GradientRequest request;
  request.batch_size = 7;
  ASSERT_TRUE(learner.Gradient(request).ok());
  const std::vector<float> first = g;
  request.same_batch = true;
  ASSERT_TRUE(learner.Gradient(request).ok());
  EXPECT_EQ(g, first);
  request.same_batch = false;
  ASSERT_TRUE(learner.Gradient(request).ok());
  EXPECT_NE(g, first);
}

// News overtake a model on a slow link: n0 tells that it has finished before
// its last model is across, and n1 waits for that all the same.
TEST(LastRound, AModelThatWasSentBeforeTheEndIsWaitedFor) {
  ClusterOptions options;
  options.nodes = 2;
  options.seed = 35;
  RunTwice(options, [&](SimCluster& c) {
    simports::SimPath slow;
    slow.rate = 20'000;  // a model takes 200 ms
    c.network().SetPath(c.address(0), c.address(1), slow);
    core::RunPlan plan = c.MakePlan("d-psgd", {});
    plan.deadline.exchange = absl::Seconds(5);
    plan.stop.rounds = 5;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(c.node(i).Status().models_received, 5) << "node " << i;
      EXPECT_EQ(c.node(i).Status().missed, 0) << "node " << i;
    }
  });
}

}  // namespace
}  // namespace dfl::runtime
