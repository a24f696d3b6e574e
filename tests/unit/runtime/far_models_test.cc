// Models of neighbours that lie too far away are not mixed with, and a
// partition that heals is no attack.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/codec/encoder.h"
#include "daemon/runtime/guards/model_distances.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/least_squares.h"
#include "tests/unit/runtime/raw_peer.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

// -------------------------------------------------------------- the bounds --

class ModelDistancesTest : public testing::Test {
 protected:
  ModelDistancesTest() { distances_.Begin(0, now_); }

  bool Takes(const std::string& peer, double distance) {
    return !distances_.Judge(NodeId(peer), {distance, own_, round_, now_});
  }
  // Rounds in which a, b and c are as far as usual.
  void Train(int rounds, double usual = 0.1) {
    for (int i = 0; i < rounds; ++i) {
      ++round_;
      now_ += absl::Milliseconds(10);
      for (const char* peer : {"a", "b", "c"}) {
        EXPECT_TRUE(Takes(peer, usual));
      }
    }
  }

  ModelDistances distances_;
  absl::Time now_ = absl::UnixEpoch();
  double own_ = 1;
  int64_t round_ = 0;
};

TEST_F(ModelDistancesTest, AtTheBeginningOnlyWildOnesAreRefused) {
  own_ = 0;
  EXPECT_TRUE(Takes("a", 9));
  EXPECT_FALSE(Takes("a", 11));
  own_ = 3;
  EXPECT_TRUE(Takes("b", 290));
  EXPECT_FALSE(Takes("b", std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(Takes("b", std::numeric_limits<double>::quiet_NaN()));
}

TEST_F(ModelDistancesTest, ThenThoseBeyondTenTimesTheUsualAndTwiceTheModel) {
  Train(20);
  EXPECT_TRUE(Takes("a", 1.9));  // as large as the model
  EXPECT_FALSE(Takes("a", 2.5));
  own_ = 0.01;
  EXPECT_TRUE(Takes("a", 0.9));
  EXPECT_FALSE(Takes("a", 2.5));
}

TEST_F(ModelDistancesTest, NobodyMakesRoomForItself) {
  own_ = 0.01;
  Train(20);
  double distance = 0.9;
  int64_t taken = 0;
  for (int i = 0; i < 100; ++i, distance *= 2) {
    Train(1);
    if (Takes("a", distance)) ++taken;
  }
  EXPECT_LE(taken, 2);
}

TEST_F(ModelDistancesTest, TheBoundWidensWithTheTimeApart) {
  own_ = 0.01;
  Train(20);
  EXPECT_FALSE(Takes("d", 80));
  for (int i = 0; i < 50; ++i) {
    ++round_;
    EXPECT_TRUE(Takes("a", 0.1));
    EXPECT_TRUE(Takes("b", 0.1));
  }
  EXPECT_FALSE(Takes("c", 11));
  EXPECT_TRUE(Takes("c", 9));
  EXPECT_FALSE(Takes("c", 9));
  // Away from everybody, it is this node that is to follow.
  now_ += absl::Hours(1);
  EXPECT_TRUE(Takes("c", 3000));
}

// A half that trained slowly has small models close together.
TEST_F(ModelDistancesTest, TheModelOfAFasterHalfIsTakenAfterAPartition) {
  own_ = 0.05;
  const auto train = [&] {
    distances_.Begin(round_, now_);
    for (int i = 0; i < 30; ++i) {
      ++round_;
      now_ += absl::Seconds(2);
      EXPECT_TRUE(Takes("d", 0.0005));
    }
  };
  train();
  EXPECT_FALSE(Takes("d", 0.5)) << "it is met in each round";
  EXPECT_FALSE(Takes("a", 7));
  EXPECT_TRUE(Takes("a", 5));
  // More may come before this node has mixed.
  EXPECT_TRUE(Takes("a", 5));
  ++round_;
  EXPECT_TRUE(Takes("a", 5));
  ++round_;
  EXPECT_FALSE(Takes("a", 5));
  train();
  now_ += absl::Seconds(1000);
  EXPECT_FALSE(Takes("a", 11)) << "a hundred times as large is the most";
  EXPECT_TRUE(Takes("a", 9));
}

TEST_F(ModelDistancesTest, ANodeThatRefusesEverybodyDoesNotDoSoForEver) {
  own_ = 0.001;
  EXPECT_FALSE(Takes("a", 150));
  now_ += absl::Seconds(10);
  EXPECT_FALSE(Takes("a", 150));
  now_ += absl::Seconds(10);
  EXPECT_TRUE(Takes("a", 150));
  EXPECT_FALSE(Takes("a", 3000));
}

// -------------------------------------------------------------- whole nodes --

int64_t FarSeen(SimCluster& c, int64_t i) {
  return c.node(i).Status().far_models;
}

class HealedPartition : public testing::TestWithParam<std::string> {};

TEST_P(HealedPartition, IsNoAttack) {
  const Problems problems(4);
  RunTwice(LeastSquaresCluster(problems, 51), [&](SimCluster& c) {
    core::KnobValues knobs;
    if (GetParam() == "pame") {
      knobs = {{"kappa", core::IntRange{1, 2}}, {"nu", 1.0}, {"p", 1.0}};
    }
    core::RunPlan plan = FullBatches(c.MakePlan(GetParam(), knobs));
    plan.deadline.exchange = absl::Milliseconds(200);
    const auto between = [&](auto change) {
      for (const int64_t i : {0, 1}) {
        for (const int64_t j : {2, 3}) change(c.address(i), c.address(j));
      }
    };
    // From the first round on.
    between([&](const auto& a, const auto& b) { c.network().Cut(a, b); });
    c.SetPlanEverywhere(plan);
    c.StartAll();
    c.RunFor(absl::Seconds(30));
    between([&](const auto& a, const auto& b) { c.network().Heal(a, b); });
    c.RunFor(absl::Seconds(20));
    // And later.
    between([&](const auto& a, const auto& b) { c.network().Cut(a, b); });
    c.RunFor(absl::Seconds(60));
    between([&](const auto& a, const auto& b) { c.network().Heal(a, b); });
    c.RunFor(absl::Seconds(20));
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(FarSeen(c, i), 0) << "node " << i;
      EXPECT_GT(c.node(i).Status().models_received, 100) << "node " << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(FarModels, HealedPartition,
                         testing::Values("d-psgd", "decefl", "dfedavgm", "pame",
                                         "k-gt", "swarm", "epidemic"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& letter : name) {
                             if (letter == '-') letter = '_';
                           }
                           return name;
                         });

// A neighbour that pushes what a test says.
class Hostile {
 public:
  // It is n3, linked to n0.
  explicit Hostile(SimCluster& c) : c_(c), peer_(c.network(), "n3") {
    peer_.Dial("n0:1");
    EXPECT_TRUE(c.RunUntil([&] { return peer_.linked(); }));
    c.RunFor(absl::Milliseconds(5));
    const ports::StateFrame state = peer_.Heard<ports::StateFrame>().back();
    EXPECT_TRUE(peer_.Send(state).ok());
  }
  bool linked() const { return peer_.linked(); }
  // The model of n0, `times` as large, as of its round and `later`.
  void Push(float times, int64_t later = 0) {
    std::vector<float> values = c_.parameters(0);
    for (float& value : values) value *= times;
    codec::EncoderInput input;
    input.values = values;
    auto encoder = codec::Encoder::Create(input);
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    ports::TransferBegin begin;
    begin.transfer = ++sent_;
    begin.kind = ports::TransferKind::kPush;
    begin.step = c_.step(0) + later;
    begin.header = (*encoder)->header_bytes();
    begin.body_bytes = (*encoder)->header().body_bytes();
    begin.body = (*encoder)->Next(1 << 20);
    ASSERT_TRUE(peer_.Send(begin).ok());
    c_.RunFor(absl::Milliseconds(10));
  }

 private:
  SimCluster& c_;
  RawPeer peer_;
  uint64_t sent_ = 0;
};

// n3 sends n0's own model, a thousand times as large, whenever it can.
TEST(FarModels, AScaledModelIsRefusedCountedAndWaitedForByNobody) {
  const Problems problems(4);
  SimCluster c(LeastSquaresCluster(problems, 52));
  core::RunPlan plan = FullBatches(c.MakePlan("d-psgd", {{"eta", 0.05}}));
  plan.deadline.exchange = absl::Seconds(2);
  c.SetPlanEverywhere(plan);
  c.Crash(3);
  c.StartAll();
  ASSERT_TRUE(c.RunToStep(100));
  Hostile hostile(c);
  const int64_t step = c.step(0);
  for (int i = 0; i < 300; ++i) hostile.Push(1000);
  EXPECT_GT(FarSeen(c, 0), 250);
  EXPECT_GT(c.log(0).Count<ports::MessageRejected>(), 0);
  EXPECT_GT(c.step(0), step + 60);  // no deadline was lost for it
  for (const float value : c.parameters(0)) EXPECT_LT(std::abs(value), 100);
  // Nobody is shut out for it: it may be honest.
  EXPECT_TRUE(hostile.linked());
}

TEST(FarModels, AStatusTellsHowFarTheModelsOfNeighboursAre) {
  const Problems problems(4);
  SimCluster c(LeastSquaresCluster(problems, 52));
  c.SetPlanEverywhere(FullBatches(c.MakePlan("d-psgd", {{"eta", 0.05}})));
  EXPECT_EQ(c.node(0).Status().gauges.count("consensus_distance"), 0u);
  c.StartAll();
  ASSERT_TRUE(c.RunToStep(100));
  const auto gauges = c.node(0).Status().gauges;
  ASSERT_EQ(gauges.count("consensus_distance"), 1u);
  // They have data of their own, and agree in the end.
  EXPECT_GT(gauges.at("consensus_distance"), 0);
  EXPECT_LT(gauges.at("consensus_distance"), 1);
}

// What is too late to be mixed costs no look, and is nobody's distance.
TEST(FarModels, APushThatIsTooLateIsNotJudged) {
  const Problems problems(4);
  SimCluster c(LeastSquaresCluster(problems, 54));
  core::RunPlan plan = FullBatches(c.MakePlan("d-psgd", {{"eta", 0.05}}));
  c.SetPlanEverywhere(plan);
  c.Crash(3);
  c.StartAll();
  ASSERT_TRUE(c.RunToStep(100));
  Hostile hostile(c);
  hostile.Push(1000, -20);
  EXPECT_EQ(FarSeen(c, 0), 0);
  hostile.Push(1000);
  EXPECT_EQ(FarSeen(c, 0), 1);
}

// Two halves of a network train apart, one of them slowly. Both learn from the
// other afterwards.
TEST(FarModels, HalvesOfUnequalSpeedTakeEachOthersModels) {
  const Problems problems(4);
  ClusterOptions options = LeastSquaresCluster(problems, 55);
  options.gradient_delay = [](int64_t i) {
    return absl::Milliseconds(i < 2 ? 10 : 500);
  };
  SimCluster c(options);
  core::RunPlan plan = FullBatches(c.MakePlan("d-psgd", {{"eta", 0.0001}}));
  plan.deadline.exchange = absl::Seconds(1);
  const auto between = [&](auto change) {
    for (const int64_t i : {0, 1}) {
      for (const int64_t j : {2, 3}) change(c.address(i), c.address(j));
    }
  };
  c.Run(plan);
  c.RunFor(absl::Seconds(3));
  between([&](const auto& a, const auto& b) { c.network().Cut(a, b); });
  c.RunFor(absl::Seconds(200));
  const auto size = [&](int64_t i) {
    double squares = 0;
    for (const float w : c.parameters(i)) {
      squares += static_cast<double>(w) * static_cast<double>(w);
    }
    return std::sqrt(squares / kParameters);
  };
  const double learned = size(0);
  EXPECT_GT(learned, 10 * size(2));
  between([&](const auto& a, const auto& b) { c.network().Heal(a, b); });
  c.RunFor(absl::Seconds(60));
  // One or the other before they have mixed.
  for (int64_t i = 0; i < 4; ++i) EXPECT_LT(FarSeen(c, i), 5) << i;
  // What the faster half has learned is not lost to the slower one's.
  EXPECT_GT(size(0), learned / 4);
  EXPECT_GT(size(2), size(0) / 2);
}

}  // namespace
}  // namespace dfl::runtime
