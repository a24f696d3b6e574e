// Neighbours that say nothing any more: no round waits for them until they
// speak.
#include "daemon/runtime/guards/silence.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_scheduler.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

// -------------------------------------------------------------- the class ----

class SilenceTest : public testing::Test, public Silence::Listener {
 protected:
  void OnSilent(const NodeId& peer, bool unanswered) override {
    said_.push_back(
        absl::StrCat("silent ", peer.name(), unanswered ? "!" : ""));
  }
  void OnHeard(const NodeId& peer) override {
    said_.push_back(absl::StrCat("heard ", peer.name()));
  }
  void Probe(const NodeId& peer) override { ++probes_[peer]; }

  std::vector<std::string> Said() { return std::exchange(said_, {}); }
  void Pass(int64_t milliseconds) {
    scheduler_.RunFor(absl::Milliseconds(milliseconds));
  }

  const NodeId a_ = NodeId("a");
  const NodeId b_ = NodeId("b");
  simports::SimScheduler scheduler_;
  simports::SimLoop loop_{scheduler_};
  std::map<NodeId, int> probes_;
  std::vector<std::string> said_;
  Silence silence_{loop_, *this, [] { return absl::Seconds(2); }};
};

TEST_F(SilenceTest, WhoDoesNotAcknowledgeForADeadlineIsAskedAndThenSilent) {
  silence_.Expect(a_);
  silence_.Expect(b_);
  Pass(1500);
  silence_.Expect(a_);  // the first one counts
  silence_.Heard(b_);
  Pass(499);
  EXPECT_TRUE(probes_.empty());
  Pass(2);
  EXPECT_EQ(probes_[a_], 1);
  EXPECT_EQ(probes_[b_], 0);
  Pass(498);
  EXPECT_TRUE(Said().empty());
  Pass(2);
  EXPECT_EQ(Said(), std::vector<std::string>{"silent a!"});
  Pass(10'000);
  EXPECT_TRUE(Said().empty());
  silence_.Heard(a_);
  EXPECT_EQ(Said(), std::vector<std::string>{"heard a"});
  // Nothing is owed now.
  Pass(10'000);
  EXPECT_TRUE(Said().empty());
  silence_.Expect(a_);
  Pass(2501);
  EXPECT_EQ(Said(), std::vector<std::string>{"silent a!"});
}

TEST_F(SilenceTest, WhoAnswersIsNotSilentHoweverSlow) {
  for (int i = 0; i < 10; ++i) {
    silence_.Expect(a_);
    Pass(2001);
    silence_.Missed(a_);
    EXPECT_EQ(probes_[a_], i + 1);
    Pass(400);
    silence_.Heard(a_);
  }
  EXPECT_TRUE(Said().empty());
}

TEST_F(SilenceTest, WhoWasMissedIsAskedAtOnceAndOnAndOn) {
  silence_.Missed(a_);
  silence_.Missed(a_);
  EXPECT_EQ(probes_[a_], 1);
  EXPECT_TRUE(Said().empty());
  Pass(501);
  EXPECT_EQ(Said(), std::vector<std::string>{"silent a"});
  Pass(1600);
  EXPECT_EQ(probes_[a_], 5);
  silence_.Heard(a_);
  Pass(2000);
  EXPECT_EQ(probes_[a_], 5);
}

// A timer that is set for later does not keep it waiting.
TEST_F(SilenceTest, WhoIsMissedIsSilentInTimeThoughOthersAreDueLater) {
  silence_.Expect(b_);
  Pass(100);
  silence_.Missed(a_);
  Pass(501);
  EXPECT_EQ(Said(), std::vector<std::string>{"silent a"});
}

TEST_F(SilenceTest, OfALinkThatIsGoneNothingIsSaid) {
  silence_.Expect(a_);
  silence_.Missed(b_);
  Said();
  silence_.Forget(a_);
  silence_.Forget(b_);
  Pass(5000);
  silence_.Heard(a_);
  silence_.Heard(b_);
  EXPECT_TRUE(Said().empty());
  EXPECT_EQ(probes_[a_], 0);
  EXPECT_EQ(probes_[b_], 1);
}

// ------------------------------------------------------- every algorithm ----

constexpr absl::Duration kDeadline = absl::Milliseconds(500);

// All that wait for neighbours.
std::vector<std::string> Waiting() {
  std::vector<std::string> names;
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    if (info.exchange != core::Exchange::kNone && !info.continuous) {
      names.push_back(info.name);
    }
  }
  return names;
}

core::RunPlan PlanOf(const SimCluster& c, const std::string& algorithm) {
  core::KnobValues knobs;
  if (algorithm == "pame") {
    knobs = {{"kappa", core::IntRange{1, 2}}, {"nu", 1.0}};
  } else if (algorithm == "kd-pdfl") {
    knobs = {{"T_ex", int64_t{4}}};
  } else if (algorithm == "fedavg+") {
    knobs = {{"fine_tune_from", int64_t{1} << 40}};
  } else if (algorithm == "async-dsgd" || algorithm == "barrier-dsgd") {
    knobs = {{"gamma_max", 0.02}};
  }
  core::RunPlan plan = c.MakePlan(algorithm, knobs);
  if (algorithm == "kd-pdfl") {
    plan.model.classes = 2;
  } else if (algorithm == "fedmid") {
    plan.topology.kind = "star";
  }
  plan.deadline.exchange = kDeadline;
  return plan;
}

ClusterOptions FrozenOptions() {
  ClusterOptions options;
  options.seed = 41;
  options.network.keepalive_timeout = absl::Seconds(60);
  return options;
}

// `victim` says and hears nothing; if it is `stopped`, as by SIGSTOP, it does
// nothing either.
void Freeze(SimCluster& c, int64_t victim, bool stopped) {
  for (int64_t i = 0; i < c.size(); ++i) {
    if (i != victim) c.network().BlackHole(c.address(i), c.address(victim));
  }
  if (stopped) c.loop(victim).Freeze();
}
// The last one.
void Freeze(SimCluster& c) { Freeze(c, c.size() - 1, /*stopped=*/false); }

void Thaw(SimCluster& c, int64_t victim) {
  c.loop(victim).Thaw();
  for (int64_t i = 0; i < c.size(); ++i) {
    if (i != victim) c.network().Heal(c.address(i), c.address(victim));
  }
}
void Thaw(SimCluster& c) { Thaw(c, c.size() - 1); }

bool AreNeighbours(SimCluster& c, int64_t node, int64_t peer) {
  for (const PeerStatus& status : c.node(node).Status().peers) {
    if (status.node == c.id(peer)) return status.neighbour;
  }
  return false;
}

int64_t ReceivedFrom(SimCluster& c, int64_t node, int64_t peer) {
  for (const PeerStatus& status : c.node(node).Status().peers) {
    if (status.node == c.id(peer)) return status.models_received;
  }
  return 0;
}

// `victim` freezes for long: the others lose three deadlines at most, and then
// it takes part again.
void PlayFreeze(SimCluster& c, const core::RunPlan& plan, int64_t victim,
                bool stopped) {
  c.Run(plan);
  ASSERT_TRUE(c.RunToStep(20));
  std::vector<int64_t> others;
  for (int64_t i = 0; i < c.size(); ++i) {
    if (i != victim) others.push_back(i);
  }
  std::map<int64_t, int64_t> at;
  const auto mark = [&] {
    for (const int64_t i : others) at[i] = c.step(i);
  };
  mark();
  c.RunFor(absl::Seconds(4));
  std::map<int64_t, double> per_second;
  for (const int64_t i : others) {
    per_second[i] = static_cast<double>(c.step(i) - at[i]) / 4;
    EXPECT_GT(per_second[i], 5) << "node " << i;
  }
  mark();
  Freeze(c, victim, stopped);
  const double frozen = stopped ? 8 : 20;
  c.RunFor(absl::Seconds(frozen));
  for (const int64_t i : others) {
    const double trained =
        static_cast<double>(c.step(i) - at[i]) / per_second[i];
    EXPECT_GT(trained, frozen - 3 * absl::ToDoubleSeconds(kDeadline) - 0.3)
        << "node " << i;
  }

  Thaw(c, victim);
  for (const int64_t i : others) at[i] = ReceivedFrom(c, i, victim);
  c.RunFor(absl::Seconds(2));
  const auto info = core::BuiltInCatalogue().Find(plan.algorithm.name);
  ASSERT_TRUE(info.ok());
  const bool in_step = (*info)->lock_step;
  for (const int64_t i : others) {
    if (!AreNeighbours(c, i, victim)) continue;
    EXPECT_GT(ReceivedFrom(c, i, victim), at[i]) << "node " << i;
    // It is where they are, so that its models are of use.
    if (in_step) {
      EXPECT_NEAR(c.step(victim), c.step(i), 20) << "node " << i;
    }
  }
  // And it costs nobody anything any more.
  std::map<int64_t, int64_t> missed;
  for (const int64_t i : others) missed[i] = c.node(i).Status().missed;
  c.RunFor(absl::Seconds(3));
  for (const int64_t i : others) {
    const NodeStatus status = c.node(i).Status();
    EXPECT_EQ(status.missed, missed[i]) << "node " << i;
    const auto imbalance = status.gauges.find("mass_imbalance");
    if (imbalance != status.gauges.end()) {
      EXPECT_LT(imbalance->second, 1e-2) << "node " << i;
    }
  }
}

std::string TestName(std::string name) {
  for (char& letter : name) {
    if (letter == '-') letter = '_';
    if (letter == '+') letter = 'P';
  }
  return name;
}

class FrozenNeighbour : public testing::TestWithParam<std::string> {};

TEST_P(FrozenNeighbour, CostsThreeDeadlinesInAllAndTakesPartAgain) {
  for (const bool stopped : {false, true}) {
    SCOPED_TRACE(stopped);
    RunTwice(FrozenOptions(), [&](SimCluster& c) {
      PlayFreeze(c, PlanOf(c, GetParam()), c.size() - 1, stopped);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Silence, FrozenNeighbour, testing::ValuesIn(Waiting()),
                         [](const auto& info) { return TestName(info.param); });

// With one neighbour, whose word alone it has.
class StoppedNeighbour : public testing::TestWithParam<std::string> {};

TEST_P(StoppedNeighbour, OfTwoFindsBack) {
  ClusterOptions options = FrozenOptions();
  options.nodes = 2;
  RunTwice(options, [](SimCluster& c) {
    PlayFreeze(c, PlanOf(c, GetParam()), 1, /*stopped=*/true);
  });
}

TEST_P(StoppedNeighbour, OfAStarFindsBackBeItHubOrLeaf) {
  for (const int64_t victim : {3, 0}) {
    SCOPED_TRACE(victim);
    RunTwice(FrozenOptions(), [&](SimCluster& c) {
      core::RunPlan plan = PlanOf(c, GetParam());
      plan.topology.kind = "star";
      PlayFreeze(c, plan, victim, /*stopped=*/true);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Silence, StoppedNeighbour,
                         testing::Values("d-psgd", "dfedavgm", "sync-dsgd",
                                         "spod-gt", "choco-sgd", "pame"),
                         [](const auto& info) { return TestName(info.param); });

// ------------------------------------------------------------- slow nodes ----

// Models take longer to encode and to check than a deadline, and are there in
// time.
TEST(SlowNeighbour, OneWhoseModelsAreOnTheirWayIsNotMissed) {
  ClusterOptions options = FrozenOptions();
  options.worker_delay = absl::Milliseconds(300);
  options.gradient_delay = [](int64_t) { return absl::Seconds(4); };
  RunTwice(options, [](SimCluster& c) {
    c.Run(PlanOf(c, "d-psgd"));
    ASSERT_TRUE(c.RunToStep(10));
    for (int64_t i = 0; i < c.size(); ++i) {
      EXPECT_EQ(c.node(i).Status().missed, 0) << "node " << i;
    }
  });
}

// One that is late in each round is waited for in each.
TEST(SlowNeighbour, OneThatComputesForLongIsWaitedForInEveryRound) {
  for (const char* algorithm : {"d-psgd", "dfedavgm"}) {
    SCOPED_TRACE(algorithm);
    ClusterOptions options = FrozenOptions();
    options.gradient_delay = [](int64_t node) {
      return absl::Milliseconds(node == 3 ? 900 : 10);
    };
    RunTwice(options, [&](SimCluster& c) {
      core::RunPlan plan = PlanOf(c, algorithm);
      if (plan.algorithm.name == "dfedavgm") {
        plan.algorithm.knobs = {{"K", int64_t{1}}};
      }
      c.Run(plan);
      ASSERT_TRUE(c.RunToStep(10));
      const int64_t step = c.step(0);
      c.RunFor(absl::Seconds(20));
      // At most two rounds in 900 ms: one that waits a deadline in vain, and
      // one in which the model comes.
      EXPECT_LT(c.step(0) - step, 50);
    });
  }
}

// Both ends of an edge may take the other for silent.
TEST(SilenceOfTwo, WhoHaveMissedEachOtherMeetAgain) {
  for (const char* algorithm : {"d-psgd", "spod-gt", "pame", "choco-sgd"}) {
    SCOPED_TRACE(algorithm);
    ClusterOptions options = FrozenOptions();
    options.nodes = 2;
    RunTwice(options, [&](SimCluster& c) {
      c.Run(PlanOf(c, algorithm));
      ASSERT_TRUE(c.RunToStep(20));
      Freeze(c);
      c.RunFor(absl::Seconds(5));
      EXPECT_GT(c.step(0), 300);
      EXPECT_GT(c.step(1), 300);
      Thaw(c);
      c.RunFor(absl::Seconds(2));
      const int64_t before = ReceivedFrom(c, 0, 1);
      const int64_t step = c.step(0);
      c.RunFor(absl::Seconds(2));
      // In every round again.
      EXPECT_GE(ReceivedFrom(c, 0, 1) - before, (c.step(0) - step) / 2 - 2);
    });
  }
}

// One that was slow once is waited for again as soon as it has spoken.
TEST(SilenceOfOne, AShortOneIsForgotten) {
  RunTwice(FrozenOptions(), [](SimCluster& c) {
    c.Run(PlanOf(c, "d-psgd"));
    ASSERT_TRUE(c.RunToStep(20));
    Freeze(c);
    c.RunFor(absl::Milliseconds(800));
    Thaw(c);
    c.RunFor(absl::Seconds(2));
    const int64_t step = c.step(0);
    const int64_t before = ReceivedFrom(c, 0, 3);
    const int64_t missed = c.node(0).Status().missed;
    EXPECT_GT(missed, 0);
    c.RunFor(absl::Seconds(5));
    EXPECT_NEAR(static_cast<double>(ReceivedFrom(c, 0, 3) - before),
                static_cast<double>(c.step(0) - step), 2);
    EXPECT_EQ(c.node(0).Status().missed, missed);
    EXPECT_LE(c.node(0).Status().gauges.at("dropped_late"), 20);
  });
}

}  // namespace
}  // namespace dfl::runtime
