// Whole runs: the algorithms on nodes that exchange through the runtime.
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/data/batch_sampler.h"
#include "daemon/simports/analytic_learner.h"
#include "daemon/simports/problems.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/least_squares.h"
#include "tests/unit/runtime/sim_cluster.h"
#include "tests/unit/runtime/unit_learner.h"

namespace dfl::runtime {
namespace {

// PaME that sends half of the coordinates, chosen at random.
core::RunPlan PartialPame(const SimCluster& c) {
  core::RunPlan plan =
      FullBatches(c.MakePlan("pame", {{"nu", 0.7},
                                      {"p", 0.5},
                                      {"kappa", core::IntRange{1, 2}},
                                      {"sigma0", 1.5},
                                      {"gamma", 1.003}}));
  plan.codec.format.coordinates = core::Coordinates::kRandom;
  return plan;
}

TEST(NodeTraining, PameConvergesOnLeastSquares) {
  const Problems problems(4);
  const double least = problems.Least();
  RunTwice(LeastSquaresCluster(problems, 11), [&](SimCluster& c) {
    core::RunPlan plan = PartialPame(c);
    plan.stop.steps = 1500;
    c.Run(plan);
    ASSERT_TRUE(
        c.RunUntil([&] { return c.AllFinished(); }, absl::Seconds(120)));
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(c.step(i), 1500);
      EXPECT_NEAR(problems.Loss(c.parameters(i)), least, 0.02) << "node " << i;
      EXPECT_GT(c.node(i).Status().models_received, 500);
      EXPECT_EQ(c.node(i).Status().missed, 0);
    }
  });
}

using MatrixOfRound = std::function<core::MixingMatrix(int64_t round)>;

// w_i <- sum_j W_ij w_j - eta g_i(w_i), in double but for g.
std::vector<std::vector<double>> NaiveDpsgd(const Problems& problems,
                                            const MatrixOfRound& matrix,
                                            double eta, int64_t rounds) {
  const size_t m = problems.all.size();
  std::vector<std::vector<double>> x(m, std::vector<double>(kParameters, 0.0));
  for (int64_t r = 0; r < rounds; ++r) {
    const core::MixingMatrix w = matrix(r);
    std::vector<std::vector<double>> next(m);
    for (size_t i = 0; i < m; ++i) {
      std::vector<float> at(x[i].begin(), x[i].end());
      std::vector<float> g(kParameters);
      problems.all[i]->Gradient(at, {}, absl::MakeSpan(g));
      next[i].assign(kParameters, 0.0);
      for (int64_t l = 0; l < kParameters; ++l) {
        for (size_t j = 0; j < m; ++j) next[i][l] += w[i][j] * x[j][l];
        next[i][l] -= eta * g[l];
      }
    }
    x = std::move(next);
  }
  return x;
}

std::vector<std::vector<double>> NaiveDpsgd(const Problems& problems,
                                            const core::MixingMatrix& w,
                                            double eta, int64_t rounds) {
  return NaiveDpsgd(problems, [&w](int64_t) { return w; }, eta, rounds);
}

core::MixingMatrix RingMatrix(SimCluster& c) {
  core::RunPlan plan = c.MakePlan("d-psgd");
  plan.topology.kind = "ring";
  return core::DeriveTopology(plan)->weights;
}

void ExpectNear(const std::vector<float>& got, const std::vector<double>& want,
                double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t l = 0; l < got.size(); ++l) {
    ASSERT_NEAR(got[l], want[l], tolerance) << "coordinate " << l;
  }
}

TEST(NodeTraining, DpsgdOnARingFollowsTheNaiveRecursion) {
  const Problems problems(5);
  RunTwice(LeastSquaresCluster(problems, 12), [&](SimCluster& c) {
    core::RunPlan plan = FullBatches(c.MakePlan("d-psgd", {{"eta", 0.05}}));
    plan.topology.kind = "ring";
    plan.stop.steps = 300;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    const auto want = NaiveDpsgd(problems, RingMatrix(c), 0.05, 300);
    for (int64_t i = 0; i < 5; ++i) {
      ExpectNear(c.parameters(i), want[i], 1e-4);
      EXPECT_EQ(c.node(i).Status().missed, 0);
      EXPECT_EQ(c.node(i).Status().gauges["dropped_late"], 0);
    }
    EXPECT_NEAR(problems.Loss(c.parameters(0)), problems.Least(), 0.1);
  });
}

// W(t) of a plan, from its edges.
MatrixOfRound MatrixOf(const core::RunPlan& plan) {
  return [plan](int64_t round) {
    auto topology = core::DeriveTopology(plan, round);
    EXPECT_TRUE(topology.ok()) << topology.status();
    return topology->weights;
  };
}

core::EdgeList Pairs(SimCluster& c,
                     const std::vector<std::pair<int64_t, int64_t>>& places) {
  core::EdgeList edges;
  for (const auto& [a, b] : places) edges.emplace_back(c.id(a), c.id(b));
  return edges;
}

// Nodes of different speed, so that those without a neighbour in a round get
// ahead and push before the others know them as neighbours.
ClusterOptions UnevenCluster(const Problems& problems, uint64_t seed) {
  ClusterOptions options = LeastSquaresCluster(problems, seed);
  options.gradient_delay = [](int64_t node) {
    return absl::Milliseconds(node == 2 ? 45 : 2 + 4 * node);
  };
  return options;
}

// Every round mixes by the weights of its own graph, nobody is waited for in
// vain, and no round is skipped.
void ExpectVaryingRounds(SimCluster& c, const Problems& problems,
                         core::RunPlan plan, int64_t rounds) {
  plan.stop.steps = rounds;
  c.Run(plan);
  ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
  const auto want = NaiveDpsgd(problems, MatrixOf(plan), 0.05, rounds);
  for (int64_t i = 0; i < c.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "node " << i);
    ExpectNear(c.parameters(i), want[i], 1e-4);
    const NodeStatus status = c.node(i).Status();
    EXPECT_EQ(status.gradients, rounds);
    EXPECT_EQ(status.missed, 0);
    EXPECT_EQ(status.gauges.at("dropped_late"), 0);
    EXPECT_TRUE(status.rejected.empty());
  }
}

// [DeceFL] supplement, time-varying experiment: in each round some nodes
// exchange and the others train alone.
TEST(NodeTraining, RoundsOfEdgeSetsFollowTheNaiveRecursion) {
  const Problems problems(5);
  RunTwice(UnevenCluster(problems, 21), [&](SimCluster& c) {
    core::RunPlan plan = FullBatches(c.MakePlan("d-psgd", {{"eta", 0.05}}));
    plan.topology.kind = "time-varying";
    plan.topology.edge_sets = {Pairs(c, {{0, 1}, {1, 2}}),
                               Pairs(c, {{3, 4}}),
                               {},
                               Pairs(c, {{2, 3}, {4, 0}}),
                               Pairs(c, {{0, 1}, {2, 4}})};
    ExpectVaryingRounds(c, problems, plan, 150);
  });
}

TEST(NodeTraining, AnEdgeThatComesEveryOtherRoundLosesNoPush) {
  const Problems problems(3);
  RunTwice(UnevenCluster(problems, 22), [&](SimCluster& c) {
    core::RunPlan plan = FullBatches(c.MakePlan("decefl", {{"eta", 0.05}}));
    plan.topology.kind = "time-varying";
    plan.topology.edge_sets = {Pairs(c, {{0, 1}, {1, 2}}), {}};
    ExpectVaryingRounds(c, problems, plan, 100);
  });
}

TEST(NodeTraining, FreshDrawsFollowTheNaiveRecursion) {
  const Problems problems(6);
  for (const char* kind : {"erdos-renyi", "random-regular"}) {
    RunTwice(UnevenCluster(problems, 23), [&](SimCluster& c) {
      core::RunPlan plan = FullBatches(c.MakePlan("d-psgd", {{"eta", 0.05}}));
      plan.topology.kind = kind;
      plan.topology.degree = 2;
      plan.topology.every = 3;
      ExpectVaryingRounds(c, problems, plan, 90);
    });
  }
}

// Whoever met nobody for a while may be ahead; whoever was not there when it
// was waited for goes on where the others are.
TEST(NodeTraining, ASlowNodeOfAVaryingTopologyJumpsToTheOthers) {
  ClusterOptions options;
  options.nodes = 3;
  options.seed = 24;
  options.gradient_delay = [](int64_t node) {
    return node == 2 ? absl::Seconds(3) : absl::Milliseconds(10);
  };
  RunTwice(options, [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("d-psgd");
    plan.topology.kind = "time-varying";
    plan.topology.edge_sets = {Pairs(c, {{0, 1}, {1, 2}}), Pairs(c, {{0, 1}})};
    c.Run(plan);
    c.RunFor(absl::Seconds(60));
    EXPECT_GE(c.step(0), 40);
    EXPECT_LE(c.node(2).Status().gradients, 20);
    EXPECT_GE(c.step(2), c.step(1) - 6);
    EXPECT_GT(c.node(2).Status().models_received, 0);
  });
}

TEST(NodeTraining, PameConvergesOverAVaryingTopology) {
  const Problems problems(4);
  const double least = problems.Least();
  RunTwice(LeastSquaresCluster(problems, 25), [&](SimCluster& c) {
    core::RunPlan plan = PartialPame(c);
    plan.topology.kind = "time-varying";
    plan.topology.edge_sets = {Pairs(c, {{0, 1}, {2, 3}, {0, 2}}),
                               Pairs(c, {{1, 2}, {0, 3}}), Pairs(c, {{1, 3}})};
    plan.topology.every = 4;
    plan.stop.steps = 1500;
    c.Run(plan);
    ASSERT_TRUE(
        c.RunUntil([&] { return c.AllFinished(); }, absl::Seconds(120)));
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(problems.Loss(c.parameters(i)), least, 0.05) << "node " << i;
      EXPECT_GT(c.node(i).Status().models_received, 200);
    }
  });
}

TEST(NodeTraining, DeceflInFormGradientIsDpsgd) {
  const Problems problems(5);
  RunTwice(LeastSquaresCluster(problems, 13), [&](SimCluster& c) {
    core::RunPlan plan = FullBatches(c.MakePlan("decefl", {{"eta", 0.05}}));
    plan.topology.kind = "ring";
    plan.stop.steps = 200;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    const auto want = NaiveDpsgd(problems, RingMatrix(c), 0.05, 200);
    for (int64_t i = 0; i < 5; ++i) ExpectNear(c.parameters(i), want[i], 1e-4);
  });
}

// w_i <- sum_j W_ij w_j - mu (w_i - w_i'), w_i' after E steps of full batches.
TEST(NodeTraining, DeceflInFormLocalFollowsTheNaiveRecursion) {
  const Problems problems(4);
  constexpr double kEta = 0.02;
  constexpr double kMu = 0.7;
  RunTwice(LeastSquaresCluster(problems, 14), [&](SimCluster& c) {
    core::RunPlan plan =
        FullBatches(c.MakePlan("decefl", {{"form", std::string("local")},
                                          {"eta", kEta},
                                          {"mu", kMu},
                                          {"E", int64_t{3}}}));
    plan.topology.kind = "ring";
    plan.stop.rounds = 100;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));

    const core::MixingMatrix w = RingMatrix(c);
    std::vector<std::vector<double>> x(4,
                                       std::vector<double>(kParameters, 0.0));
    for (int r = 0; r < 100; ++r) {
      auto next = x;
      for (size_t i = 0; i < 4; ++i) {
        std::vector<double> local = x[i];
        for (int e = 0; e < 3; ++e) {
          std::vector<float> at(local.begin(), local.end());
          std::vector<float> g(kParameters);
          problems.all[i]->Gradient(at, {}, absl::MakeSpan(g));
          for (int64_t l = 0; l < kParameters; ++l) local[l] -= kEta * g[l];
        }
        for (int64_t l = 0; l < kParameters; ++l) {
          next[i][l] = -kMu * (x[i][l] - local[l]);
          for (size_t j = 0; j < 4; ++j) next[i][l] += w[i][j] * x[j][l];
        }
      }
      x = std::move(next);
    }
    for (int64_t i = 0; i < 4; ++i) {
      ExpectNear(c.parameters(i), x[i], 1e-4);
      EXPECT_EQ(c.node(i).Status().gradients, 300);
    }
    EXPECT_NEAR(problems.Loss(c.parameters(0)), problems.Least(), 0.1);
  });
}

class LoneNode : public testing::TestWithParam<std::string> {};

TEST_P(LoneNode, TrainsExactlyAsPlainSgd) {
  const Problems problems(1);
  RunTwice(LeastSquaresCluster(problems, 15), [&](SimCluster& c) {
    core::RunPlan plan = c.MakePlan(GetParam(), {{"eta", 0.03}});
    plan.stop.steps = 200;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));

    std::vector<float> w(kParameters, 0.0F);
    std::vector<float> g(kParameters);
    data::BatchSampler batches(
        kRows, 16, DeriveSeed(DeriveSeed(15, "learner", 0), "batches"));
    for (int k = 0; k < 200; ++k) {
      problems.all[0]->Gradient(w, batches.Next(), absl::MakeSpan(g));
      for (int64_t l = 0; l < kParameters; ++l) w[l] += -0.03F * g[l];
    }
    EXPECT_EQ(c.parameters(0), w);
  });
}

INSTANTIATE_TEST_SUITE_P(NodeTraining, LoneNode,
                         testing::Values("local", "d-psgd", "decefl"),
                         [](const auto& info) {
                           return info.param == "d-psgd" ? "dpsgd" : info.param;
                         });

// Agreement is a fixed point, through encoder, chunks, decoder and mixing.
struct Format {
  std::string algorithm;
  core::MessageFormat format;
};

class Agreement : public testing::TestWithParam<Format> {};

TEST_P(Agreement, EqualModelsStayBitIdentical) {
  ClusterOptions options;
  options.seed = 16;
  options.nodes = 4;
  // Small chunks, so that a message takes several.
  options.transfers.chunk_bytes = 1000;
  RunTwice(options, [&](SimCluster& c) {
    core::KnobValues knobs;
    if (GetParam().algorithm == "pame") {
      knobs = {{"kappa", core::IntRange{1, 3}}, {"p", 0.3}};
    }
    core::RunPlan plan = c.MakePlan(GetParam().algorithm, knobs);
    plan.topology.kind = "ring";
    plan.codec.format = GetParam().format;
    plan.codec.rate = 0.3;
    plan.stop.steps = 100;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    simports::FakeLearner learner(1000, 7);
    const auto [w, b] = InitialModel(learner, plan);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(c.parameters(i), w) << "node " << i;
      c.node(i).CopyModel([&](absl::StatusOr<SnapshotPtr> model) {
        ASSERT_TRUE(model.ok());
        EXPECT_TRUE(std::equal(b.begin(), b.end(), (*model)->buffers.begin()));
        EXPECT_EQ((*model)->step, 100);
      });
      const NodeStatus status = c.node(i).Status();
      EXPECT_GE(status.models_received, 33);  // kappa at most 3
      EXPECT_EQ(status.missed, 0);
      EXPECT_TRUE(status.rejected.empty());
    }
  });
}

std::vector<Format> AllFormats() {
  std::vector<Format> all;
  for (const std::string& algorithm :
       std::vector<std::string>{"pame", "d-psgd", "decefl"}) {
    for (const auto coordinates :
         {core::Coordinates::kDense, core::Coordinates::kRandom,
          core::Coordinates::kTopK}) {
      if (algorithm == "pame" && coordinates == core::Coordinates::kTopK) {
        continue;  // refused in the plan
      }
      for (const auto values :
           {core::ValueType::kFp32, core::ValueType::kFp16,
            core::ValueType::kBf16, core::ValueType::kInt8}) {
        all.push_back(Format{algorithm, {coordinates, values}});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(NodeTraining, Agreement,
                         testing::ValuesIn(AllFormats()), [](const auto& info) {
                           std::string name = absl::StrCat(
                               info.param.algorithm == "d-psgd"
                                   ? "dpsgd"
                                   : info.param.algorithm,
                               "_",
                               core::ToString(info.param.format.coordinates),
                               "_", core::ToString(info.param.format.values));
                           return name;
                         });

TEST(NodeTraining, UnequalModelsMeetAtTheirMeanWithoutGradients) {
  ClusterOptions options;
  options.seed = 17;
  options.nodes = 4;
  RunTwice(options, [&](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("d-psgd");
    plan.codec.format = {core::Coordinates::kRandom, core::ValueType::kFp32};
    plan.codec.rate = 0.5;
    plan.stop.steps = 200;
    c.SetPlanEverywhere(plan);
    std::vector<double> mean(1000, 0.0);
    for (int64_t i = 0; i < 4; ++i) {
      auto model = std::make_shared<Snapshot>();
      model->parameters.resize(1000);
      model->buffers.assign(7, static_cast<float>(i));
      Rng rng(DeriveSeed(17, "start", i));
      for (int64_t l = 0; l < 1000; ++l) {
        model->parameters[l] = static_cast<float>(rng.Uniform());
        mean[l] += model->parameters[l] / 4;
      }
      c.node(i).ReplaceModel(model, [](absl::Status status) {
        EXPECT_TRUE(status.ok()) << status;
      });
    }
    c.StartAll();
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    for (int64_t i = 0; i < 4; ++i) {
      ExpectNear(c.parameters(i), mean, 1e-4);
      c.node(i).CopyModel([&](absl::StatusOr<SnapshotPtr> model) {
        for (const float b : (*model)->buffers) EXPECT_NEAR(b, 1.5, 1e-3);
      });
    }
  });
}

}  // namespace
}  // namespace dfl::runtime
