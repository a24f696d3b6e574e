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

TEST_F(SilenceTest, WhoDoesNotAcknowledgeForADeadlineIsSilent) {
  silence_.Expect(a_);
  silence_.Expect(b_);
  Pass(1500);
  silence_.Expect(a_);  // the first one counts
  silence_.Heard(b_);
  Pass(499);
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
  Pass(2001);
  EXPECT_EQ(Said(), std::vector<std::string>{"silent a!"});
}

TEST_F(SilenceTest, WhoWasMissedIsSilentAtOnceAndProbed) {
  silence_.Missed(a_);
  silence_.Missed(a_);
  EXPECT_EQ(Said(), std::vector<std::string>{"silent a"});
  EXPECT_EQ(probes_[a_], 1);
  Pass(2100);
  EXPECT_EQ(probes_[a_], 5);
  silence_.Heard(a_);
  Pass(2000);
  EXPECT_EQ(probes_[a_], 5);
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

// The last node says and hears nothing.
void Freeze(SimCluster& c) {
  for (int64_t i = 0; i + 1 < c.size(); ++i) {
    c.network().BlackHole(c.address(i), c.address(c.size() - 1));
  }
}

void Thaw(SimCluster& c) {
  for (int64_t i = 0; i + 1 < c.size(); ++i) {
    c.network().Heal(c.address(i), c.address(c.size() - 1));
  }
}

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

class FrozenNeighbour : public testing::TestWithParam<std::string> {};

TEST_P(FrozenNeighbour, CostsThreeDeadlinesInAllAndTakesPartAgain) {
  RunTwice(FrozenOptions(), [](SimCluster& c) {
    c.Run(PlanOf(c, GetParam()));
    ASSERT_TRUE(c.RunToStep(20));
    std::vector<int64_t> at(3);
    const auto mark = [&] {
      for (int64_t i = 0; i < 3; ++i) at[i] = c.step(i);
    };
    mark();
    c.RunFor(absl::Seconds(4));
    std::vector<double> per_second(3);
    for (int64_t i = 0; i < 3; ++i) {
      per_second[i] = static_cast<double>(c.step(i) - at[i]) / 4;
      EXPECT_GT(per_second[i], 5) << "node " << i;
    }
    mark();
    Freeze(c);
    c.RunFor(absl::Seconds(20));
    for (int64_t i = 0; i < 3; ++i) {
      const double trained =
          static_cast<double>(c.step(i) - at[i]) / per_second[i];
      EXPECT_GT(trained, 20 - 3 * absl::ToDoubleSeconds(kDeadline) - 0.3)
          << "node " << i;
    }

    Thaw(c);
    for (int64_t i = 0; i < 3; ++i) at[i] = ReceivedFrom(c, i, 3);
    c.RunFor(absl::Seconds(2));
    for (int64_t i = 0; i < 3; ++i) {
      if (!AreNeighbours(c, i, 3)) continue;
      EXPECT_GT(ReceivedFrom(c, i, 3), at[i]) << "node " << i;
    }
    // And it costs nobody anything any more.
    std::vector<int64_t> missed(3);
    for (int64_t i = 0; i < 3; ++i) missed[i] = c.node(i).Status().missed;
    c.RunFor(absl::Seconds(3));
    for (int64_t i = 0; i < 3; ++i) {
      const NodeStatus status = c.node(i).Status();
      EXPECT_EQ(status.missed, missed[i]) << "node " << i;
      const auto imbalance = status.gauges.find("mass_imbalance");
      if (imbalance != status.gauges.end()) {
        EXPECT_LT(imbalance->second, 1e-2) << "node " << i;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Silence, FrozenNeighbour, testing::ValuesIn(Waiting()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& letter : name) {
                             if (letter == '-') letter = '_';
                             if (letter == '+') letter = 'P';
                           }
                           return name;
                         });

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
