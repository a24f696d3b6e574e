// KD-PDFL on whole nodes: stars pull models, predict and mix.
#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/distributions.h"
#include "daemon/base/rng.h"
#include "daemon/simports/analytic_learner.h"
#include "daemon/simports/problems.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/sim_cluster.h"
#include "tests/unit/runtime/unit_learner.h"

namespace dfl::runtime {
namespace {

constexpr int64_t kClients = 6;
constexpr int64_t kRowsEach = 40;
constexpr int64_t kTestRows = 200;

// Two kinds of clients, for whom the two classes are cut differently: the line
// between them is turned by 90 degrees.
std::pair<std::shared_ptr<const simports::Softmax>, std::vector<int64_t>> Rows(
    int64_t client, int64_t rows, uint64_t seed) {
  Rng rng(DeriveSeed(seed, "rows", static_cast<uint64_t>(client)));
  std::vector<double> x;
  std::vector<int64_t> labels;
  for (int64_t row = 0; row < rows; ++row) {
    const double a = Normal(rng);
    const double b = Normal(rng);
    x.push_back(a);
    x.push_back(b);
    labels.push_back((client % 2 == 0 ? a + b : a - b) > 0 ? 1 : 0);
  }
  return {std::make_shared<simports::Softmax>(std::move(x), labels, 2), labels};
}

ClusterOptions Clients(uint64_t seed) {
  ClusterOptions options;
  options.nodes = kClients;
  options.seed = seed;
  options.learner = [seed](int64_t i) {
    auto [test, labels] = Rows(i, kTestRows, seed + 1);
    simports::AnalyticLearnerOptions learner;
    learner.kind = "softmax";
    learner.seed = DeriveSeed(seed, "learner", i);
    return std::make_unique<simports::AnalyticLearner>(
        learner, Rows(i, kRowsEach, seed).first,
        simports::SoftmaxTest(std::move(test), std::move(labels), 2));
  };
  return options;
}

core::RunPlan Classify(core::RunPlan plan) {
  plan.model.classes = 2;
  plan.batch_size = kRowsEach;
  plan.deadline.exchange = absl::Milliseconds(300);
  return plan;
}

// [thesis] ch. 4: every client does better than with one model for all.
TEST(NodePersonal, BeatsFedavgForEveryClientOnSkewedData) {
  const auto accuracies = [](const std::string& algorithm,
                             const core::KnobValues& knobs) {
    std::vector<double> accuracy;
    RunTwice(Clients(51), [&](SimCluster& c) {
      core::RunPlan plan = Classify(c.MakePlan(algorithm, knobs));
      plan.stop.steps = 200;
      c.Run(plan);
      ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
      accuracy.clear();
      for (int64_t i = 0; i < kClients; ++i) {
        const NodeStatus status = c.node(i).Status();
        accuracy.push_back(status.evaluation.accuracy.value_or(0));
        EXPECT_TRUE(status.rejected.empty());
      }
    });
    return accuracy;
  };
  const auto personal =
      accuracies("kd-pdfl", {{"eta", 0.5}, {"T_ex", int64_t{5}}});
  // Averages of what local steps gave: federated averaging as it is known.
  const auto shared =
      accuracies("dfedavgm", {{"eta", 0.5}, {"theta", 0.0}, {"K", int64_t{1}}});
  const auto alone = accuracies("local", {{"eta", 0.5}});
  double gain = 0;
  for (int64_t i = 0; i < kClients; ++i) {
    EXPECT_GT(personal[i], shared[i] + 0.1) << "client " << i;
    EXPECT_GT(personal[i], 0.9) << "client " << i;
    gain += personal[i] - alone[i];
  }
  EXPECT_GT(gain, 0);  // and on the whole better than alone
}

TEST(NodePersonal, EveryNodeIsStarOnItsOwnTimer) {
  RunTwice(Clients(52), [&](SimCluster& c) {
    core::RunPlan plan = Classify(c.MakePlan(
        "kd-pdfl",
        {{"T_ex", int64_t{5}}, {"subset", int64_t{2}}, {"eta", 0.1}}));
    plan.stop.rounds = 19;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    for (int64_t i = 0; i < kClients; ++i) {
      const NodeStatus status = c.node(i).Status();
      // Nineteen times star, and a gradient in each other iteration.
      EXPECT_EQ(status.gradients, c.step(i) - 19);
      EXPECT_EQ(status.step, status.gradients);
      EXPECT_GE(status.models_received, 2 * 19 - 2) << "node " << i;
      EXPECT_LE(status.models_received, 2 * 19);
    }
  });
}

// One star at a time sends its model to those that it asked.
TEST(NodePersonal, AdoptersTakeAStarsModel) {
  RunTwice(Clients(53), [&](SimCluster& c) {
    core::RunPlan plan =
        Classify(c.MakePlan("kd-pdfl", {{"T_ex", int64_t{5}},
                                        {"stars", std::string("drawn")},
                                        {"adopt", true},
                                        {"eta", 0.1}}));
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(100));
    int64_t skipped = 0;
    for (int64_t i = 0; i < kClients; ++i) {
      const NodeStatus status = c.node(i).Status();
      skipped += c.step(i) - status.gradients;
      EXPECT_TRUE(status.rejected.empty());
    }
    // About nineteen stars with five adopters each.
    EXPECT_GT(skipped, 19 * 4);
    EXPECT_LT(skipped, 21 * 6 + kClients);
  });
}

TEST(NodePersonal, LiteralRoundsGoOn) {
  RunTwice(Clients(54), [&](SimCluster& c) {
    core::RunPlan plan = Classify(c.MakePlan(
        "kd-pdfl",
        {{"T_ex", int64_t{5}}, {"literal_rounds", true}, {"eta", 0.1}}));
    plan.stop.steps = 5 + 3 * 19;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    for (int64_t i = 0; i < kClients; ++i) {
      EXPECT_EQ(c.node(i).Status().gradients, 5 + 3 * 19);
      EXPECT_EQ(c.step(i), 100);
    }
  });
}

TEST(NodePersonal, TrainsThroughLostLinksAndACrash) {
  ClusterOptions options = Clients(55);
  options.network.path.jitter = absl::Milliseconds(20);
  options.network.path.reset_probability = 0.002;
  RunTwice(options, [&](SimCluster& c) {
    c.Run(Classify(c.MakePlan(
        "kd-pdfl", {{"T_ex", int64_t{5}}, {"eta", 0.5}, {"adopt", true}})));
    c.RunFor(absl::Seconds(5));
    const int64_t before = c.step(0);
    c.Crash(2);
    c.RunFor(absl::Seconds(3));
    EXPECT_GT(c.step(0), before + 10);
    c.Restart(2);
    ASSERT_TRUE(c.node(2).Start().ok());
    c.RunFor(absl::Seconds(10));
    for (int64_t i = 0; i < kClients; ++i) {
      EXPECT_EQ(c.node(i).phase(), ports::Phase::kTraining);
      EXPECT_GT(c.step(i), 300) << "node " << i;
      EXPECT_EQ(c.node(i).Status().rejected.count("bad-message"), 0U);
    }
  });
}

// Agreement is a fixed point, through encoder, decoder and mixing.
TEST(NodePersonal, EqualModelsStayBitIdentical) {
  for (const auto values : {core::ValueType::kFp32, core::ValueType::kFp16,
                            core::ValueType::kBf16, core::ValueType::kInt8}) {
    ClusterOptions options;
    options.seed = 56;
    RunTwice(options, [&](SimCluster& c) {
      core::RunPlan plan = Classify(
          c.MakePlan("kd-pdfl", {{"T_ex", int64_t{3}}, {"adopt", true}}));
      plan.codec.format.values = values;
      plan.stop.steps = 60;
      c.Run(plan);
      ASSERT_TRUE(c.RunToStep(60));
      simports::FakeLearner learner(1000, 7);
      const auto [w, b] = InitialModel(learner, plan);
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(c.parameters(i), w) << "node " << i;
        EXPECT_GT(c.node(i).Status().models_received, 20);
      }
    });
  }
}

// A prediction that fails is reported and changes nothing; the node trains on.
TEST(NodePersonal, FailingPredictionsDoNotStopTheRounds) {
  RunTwice(Clients(57), [&](SimCluster& c) {
    c.Run(
        Classify(c.MakePlan("kd-pdfl", {{"T_ex", int64_t{3}}, {"eta", 0.1}})));
    ASSERT_TRUE(c.RunToStep(20));
    c.trainer(1).FailWith(absl::InternalError("the learner broke"));
    const int64_t before = c.node(1).algorithm()->step();
    ASSERT_TRUE(c.RunUntil(
        [&] { return c.node(1).algorithm()->step() > before + 20; }));
    EXPECT_EQ(c.node(1).phase(), ports::Phase::kDegraded);
    c.trainer(1).FailWith(absl::OkStatus());
    ASSERT_TRUE(c.RunUntil(
        [&] { return c.node(1).phase() == ports::Phase::kTraining; }));
    const int64_t after = c.step(1);
    ASSERT_TRUE(c.RunUntil([&] { return c.step(1) > after + 20; }));
    EXPECT_EQ(c.node(1).phase(), ports::Phase::kTraining);
    EXPECT_EQ(c.node(1).Status().gauges["received"], 5);
  });
}

class PredictsNothing : public simports::FakeLearner {
 public:
  PredictsNothing() : simports::FakeLearner(100, 3) {}
  absl::StatusOr<ports::Predictions> Predict(
      const ports::PredictRequest&) override {
    return absl::InternalError("no outputs");
  }
};

// It is told once, no turn counts as a round, and the run does not go on so for
// ever.
TEST(NodePersonal, PredictionsThatAlwaysFailEndTheRun) {
  ClusterOptions options;
  options.nodes = 3;
  options.seed = 59;
  options.learner = [](int64_t i) -> std::unique_ptr<ports::Learner> {
    if (i == 0) return std::make_unique<PredictsNothing>();
    return std::make_unique<simports::FakeLearner>(100, 3);
  };
  RunTwice(options, [](SimCluster& c) {
    core::RunPlan plan =
        Classify(c.MakePlan("kd-pdfl", {{"T_ex", int64_t{3}}, {"eta", 0.1}}));
    plan.stop.rounds = 1000;
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(30));
    EXPECT_EQ(c.node(0).phase(), ports::Phase::kTraining);
    EXPECT_EQ(c.node(0).Status().last_error, "no outputs");
    EXPECT_EQ(c.node(0).Status().round, 0);
    EXPECT_GT(c.node(1).Status().round, 5);
    ASSERT_TRUE(
        c.RunUntil([&] { return c.node(0).phase() == ports::Phase::kFailed; }));
    EXPECT_NE(c.node(0).Status().phase_reason.find(
                  "20 predictions in a row came to nothing"),
              std::string::npos);
    EXPECT_EQ(c.log(0).Count<ports::LearnerFailed>(), 1);
    EXPECT_EQ(c.node(1).phase(), ports::Phase::kTraining);
  });
}

// The algorithm is changed while a gradient that outlives its round is under
// way, and a star has its answers before that is done.
TEST(NodePersonal, APredictionWaitsForAGradientUnderWay) {
  ClusterOptions options = Clients(58);
  options.gradient_delay = [](int64_t i) {
    return absl::Milliseconds(i == 0 ? 400 : 5);
  };
  RunTwice(options, [&](SimCluster& c) {
    core::RunPlan plan =
        Classify(c.MakePlan("async-dsgd", {{"eta", 0.1}, {"gamma_max", 0.02}}));
    plan.deadline.exchange = absl::Milliseconds(50);
    c.Run(plan);
    c.RunFor(absl::Seconds(1));
    for (int turn = 0; turn < 12; ++turn) {
      ++plan.version;
      const bool personal = turn % 2 == 0;
      plan.algorithm.name = personal ? "kd-pdfl" : "async-dsgd";
      plan.algorithm.knobs =
          personal ? core::KnobValues{{"T_ex", int64_t{3}}, {"eta", 0.1}}
                   : core::KnobValues{{"eta", 0.1}, {"gamma_max", 0.02}};
      c.SetPlanEverywhere(plan);
      const int64_t before = c.step(0);
      ASSERT_TRUE(c.RunUntil([&] { return c.step(0) > before + 3; }));
      EXPECT_EQ(c.node(0).Status().gauges.count("received"),
                personal ? 1U : 0U);
      c.RunFor(absl::Milliseconds(37 * turn));
    }
    EXPECT_EQ(c.log(0).Count<ports::LearnerFailed>(), 0);
  });
}

// ----------------------------------------------------- the learner's part ----

TEST(AnalyticLearnerTest, PredictsOneBatchWithEachModel) {
  const auto problem = Rows(0, 10, 61).first;
  simports::AnalyticLearner learner({}, problem);
  std::vector<float> w = {0.5F, -1, 2, 0.25F, 0, 1};
  const std::vector<float> before = w;
  std::vector<float> g(w.size());
  ASSERT_TRUE(learner.Bind(absl::MakeSpan(w), absl::MakeSpan(g), {}).ok());
  auto models = std::make_shared<std::vector<core::ModelValues>>(2);
  (*models)[0].parameters.assign(w.begin(), w.end());
  (*models)[1].parameters.assign(w.size(), 0.0F);
  std::set<int64_t> seen;  // rows, by their first probability
  for (int batch = 0; batch < 2; ++batch) {
    const auto result = learner.Predict({5, models});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->rows, 5);
    ASSERT_EQ(result->probabilities.size(), 3U);
    EXPECT_EQ(result->probabilities[0], result->probabilities[1]);
    EXPECT_EQ(result->probabilities[2], std::vector<double>(10, 0.5));
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t row = 0; row < 10; ++row) {
        std::vector<double> p(2);
        problem->Predict(w, row, absl::MakeSpan(p));
        if (p[0] == result->probabilities[0][2 * i]) seen.insert(row);
      }
    }
  }
  EXPECT_EQ(seen.size(), 10U);  // two batches, one pass
  EXPECT_EQ(w, before);
}

// As ports::Learner says, so that what stands on it sees what the daemon does.
TEST(AnalyticLearnerTest, ABatchWithoutAGradientLeavesZeroAndIsNotTakenAgain) {
  const auto make = [](std::vector<float>& w, std::vector<float>& g) {
    auto learner = std::make_unique<simports::AnalyticLearner>(
        simports::AnalyticLearnerOptions{},
        std::make_shared<simports::LeastSquares>(std::vector<double>{1, 1},
                                                 std::vector<double>{1, 3}));
    EXPECT_TRUE(learner->Bind(absl::MakeSpan(w), absl::MakeSpan(g), {}).ok());
    return learner;
  };
  ports::GradientRequest request;
  request.batch_size = 1;
  std::vector<float> w = {0};
  std::vector<float> g = {7};
  const auto usual = make(w, g);
  ASSERT_TRUE(usual->Gradient(request).ok());
  const double second = usual->Gradient(request)->loss;

  const auto learner = make(w, g);
  w[0] = std::numeric_limits<float>::infinity();
  g[0] = 7;
  EXPECT_EQ(learner->Gradient(request).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(g[0], 0);
  w[0] = 0;
  request.same_batch = true;
  const auto next = learner->Gradient(request);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->loss, second);
  EXPECT_EQ(learner->Gradient(request)->loss, second);
}

TEST(AnalyticLearnerTest, MacroF1LeavesOutClassesThatNeverOccur) {
  const auto problem = std::make_shared<simports::LeastSquares>(
      std::vector<double>{1, 1}, std::vector<double>{1, 3});
  simports::AnalyticTest test;
  test.problem = problem;
  test.classes = 3;
  test.labels = {0, 1};
  test.predict = [](absl::Span<const float>, int64_t row) { return row; };
  simports::AnalyticLearner learner({}, problem, test);
  std::vector<float> w = {0};
  std::vector<float> g = {0};
  ASSERT_TRUE(learner.Bind(absl::MakeSpan(w), absl::MakeSpan(g), {}).ok());
  EXPECT_DOUBLE_EQ(learner.Evaluate(0)->macro_f1.value_or(0), 1);
}

TEST(AnalyticLearnerTest, RefusesWhatItCannotPredict) {
  auto models = std::make_shared<std::vector<core::ModelValues>>(1);
  simports::AnalyticLearner regression(
      {}, std::make_shared<simports::LeastSquares>(std::vector<double>{1, 2},
                                                   std::vector<double>{1}));
  EXPECT_EQ(regression.Predict({1, models}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  simports::AnalyticLearner learner({}, Rows(0, 10, 62).first);
  std::vector<float> w(6);
  std::vector<float> g(6);
  ASSERT_TRUE(learner.Bind(absl::MakeSpan(w), absl::MakeSpan(g), {}).ok());
  EXPECT_EQ(learner.Predict({1, models}).status().code(),
            absl::StatusCode::kInvalidArgument);
  (*models)[0].parameters.assign(6, 0.0F);
  (*models)[0].buffers.assign(1, 0.0F);
  EXPECT_EQ(learner.Predict({1, models}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace dfl::runtime
