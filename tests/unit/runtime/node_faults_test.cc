// Neighbours that die, vanish, crawl, come back; nodes that start late or fail
// to train.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/simports/analytic_learner.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

constexpr absl::Duration kStep = absl::Milliseconds(10);
constexpr absl::Duration kDeadline = absl::Milliseconds(300);
// Messages of one round on links of 1 ms.
constexpr absl::Duration kTravel = absl::Milliseconds(10);

int64_t ModelsFrom(SimCluster& c, int64_t node, int64_t peer) {
  for (const PeerStatus& status : c.node(node).Status().peers) {
    if (status.node == c.id(peer)) return status.models_received;
  }
  return 0;
}

void ExpectNobodyWaited(SimCluster& c, absl::Time from) {
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_LE(c.LongestGap(i, from, c.Now()), kDeadline + kStep + kTravel)
        << "node " << i;
  }
}

class Deadlines : public testing::TestWithParam<std::string> {
 protected:
  core::RunPlan Plan(const SimCluster& c) const {
    core::KnobValues knobs;
    if (GetParam() == "pame") {
      knobs = {{"kappa", core::IntRange{1, 2}}, {"nu", 1.0}};
    }
    core::RunPlan plan = c.MakePlan(GetParam(), knobs);
    plan.deadline.exchange = kDeadline;
    plan.deadline.ceiling = kDeadline;  // links that are slow get no more
    return plan;
  }
};

TEST_P(Deadlines, ADeadNeighbourDelaysNobodyAndTakesPartAgain) {
  ClusterOptions options;
  options.seed = 21;
  RunTwice(options, [&](SimCluster& c) {
    c.Run(Plan(c));
    c.RunFor(absl::Seconds(1));
    const absl::Time from = c.Now();
    c.Crash(3);
    c.RunFor(absl::Seconds(5));
    ExpectNobodyWaited(c, from);
    EXPECT_GT(c.step(0), 400);

    c.Restart(3);
    ASSERT_TRUE(c.node(3).Start().ok());
    const int64_t before = ModelsFrom(c, 0, 3);
    ASSERT_TRUE(c.RunUntil([&] { return ModelsFrom(c, 0, 3) > before + 20; }));
    ExpectNobodyWaited(c, from);
  });
}

TEST_P(Deadlines, ABlackHoleDelaysNobodyAndTakesPartAgain) {
  ClusterOptions options;
  options.seed = 22;
  options.network.keepalive_timeout = absl::Seconds(3);
  RunTwice(options, [&](SimCluster& c) {
    c.Run(Plan(c));
    c.RunFor(absl::Seconds(1));
    const absl::Time from = c.Now();
    for (int64_t i = 0; i < 3; ++i) {
      c.network().BlackHole(c.address(i), c.address(3));
    }
    c.RunFor(absl::Seconds(10));
    ExpectNobodyWaited(c, from);
    EXPECT_GT(c.node(0).Status().missed, 0);

    for (int64_t i = 0; i < 3; ++i) {
      c.network().Heal(c.address(i), c.address(3));
    }
    const int64_t before = ModelsFrom(c, 0, 3);
    ASSERT_TRUE(c.RunUntil([&] { return ModelsFrom(c, 0, 3) > before + 20; }));
    ExpectNobodyWaited(c, from);
  });
}

TEST_P(Deadlines, ASlowNeighbourDelaysNobodyBeyondTheDeadline) {
  ClusterOptions options;
  options.seed = 23;
  options.gradient_delay = [](int64_t i) {
    return i == 3 ? 50 * kStep : kStep;
  };
  RunTwice(options, [&](SimCluster& c) {
    c.Run(Plan(c));
    c.RunFor(absl::Seconds(1));
    const absl::Time from = c.Now();
    c.RunFor(absl::Seconds(10));
    ExpectNobodyWaited(c, from);
    EXPECT_GT(ModelsFrom(c, 0, 3), 5);
    EXPECT_GT(c.step(3), 5);
  });
}

// Every link is reset again and again, frames come at odd times, a node dies
// and comes back: nobody stops, nothing is left over, and models stay together.
TEST_P(Deadlines, AStormOfLostLinksStopsNobody) {
  for (const uint64_t seed : {71, 72, 73}) {
    ClusterOptions options;
    options.seed = seed;
    options.network.path.jitter = absl::Milliseconds(20);
    options.network.path.reset_probability = 0.002;
    options.transfers.chunk_bytes = 1000;
    options.transfers.window_bytes = 3000;
    RunTwice(options, [&](SimCluster& c) {
      c.Run(Plan(c));
      // Looking for a neighbour to start from is no step.
      ASSERT_TRUE(c.RunUntil(
          [&] { return c.node(0).phase() == ports::Phase::kTraining; }));
      const absl::Time from = c.Now();
      c.RunFor(absl::Seconds(10));
      c.Crash(2);
      c.RunFor(absl::Seconds(5));
      c.Restart(2);
      ASSERT_TRUE(c.node(2).Start().ok());
      c.RunFor(absl::Seconds(15));
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_GT(c.step(i), 80) << "node " << i;
        EXPECT_EQ(c.node(i).phase(), ports::Phase::kTraining);
        EXPECT_TRUE(c.node(i).Status().rejected.count("bad-message") == 0);
        EXPECT_GT(c.node(i).Status().models_received, 50);
        EXPECT_EQ(c.parameters(i), c.parameters(0));  // zero gradients
        EXPECT_LE(c.node(i).transfers().inbound(), 12);
        EXPECT_LE(c.node(i).transfers().outbound(), 12);
      }
      EXPECT_GT(c.log(0).Count<ports::LinkDown>(), 5);
      EXPECT_LE(c.LongestGap(0, from, c.Now()), kDeadline + kStep + kTravel);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(NodeFaults, Deadlines,
                         testing::Values("pame", "d-psgd", "decefl"),
                         [](const auto& info) {
                           return info.param == "d-psgd" ? "dpsgd" : info.param;
                         });

TEST(NodeFaults, ARestartedNodeTakesModelAndStepFromANeighbour) {
  ClusterOptions options;
  options.seed = 24;
  RunTwice(options, [](SimCluster& c) {
    c.Run(c.MakePlan("pame", {{"sigma0", 2.0}, {"gamma", 1.01}}));
    ASSERT_TRUE(c.RunToStep(50));
    c.Crash(2);
    c.RunFor(absl::Seconds(1));
    c.Restart(2);
    EXPECT_EQ(c.step(2), 0);
    ASSERT_TRUE(c.node(2).Start().ok());
    EXPECT_EQ(c.node(2).phase(), ports::Phase::kJoining);
    ASSERT_TRUE(
        c.RunUntil([&] { return c.log(2).Count<ports::StateTaken>() == 1; },
                   absl::Seconds(2)));
    const auto taken = c.log(2).Of<ports::StateTaken>()[0];
    EXPECT_GE(taken.step, 100);
    EXPECT_EQ(c.step(2), taken.step);
    EXPECT_GT(taken.round, 0);
    EXPECT_EQ(c.node(2).Status().round, taken.round);
    EXPECT_EQ(c.node(2).phase(), ports::Phase::kTraining);
    EXPECT_NEAR(c.node(2).Status().gauges["sigma"],
                2 * std::pow(1.01, static_cast<double>(taken.step)), 1e-6);
    ASSERT_TRUE(c.RunUntil([&] { return c.step(2) > taken.step + 50; }));
    // Nobody took anything from it.
    EXPECT_EQ(c.log(0).Count<ports::StateTaken>(), 0);
  });
}

TEST(NodeFaults, ALonelyNodeStartsFreshAndTakesTheFirstModelAhead) {
  ClusterOptions options;
  options.seed = 25;
  options.nodes = 2;
  RunTwice(options, [](SimCluster& c) {
    const core::RunPlan plan = c.MakePlan("pame");
    c.SetPlanEverywhere(plan);
    c.Crash(1);
    const absl::Time started = c.Now();
    ASSERT_TRUE(c.node(0).Start().ok());
    ASSERT_TRUE(c.RunUntil([&] { return c.step(0) > 0; }));
    EXPECT_GE(c.Now() - started, absl::Seconds(2));  // joining.within
    EXPECT_LT(c.Now() - started, absl::Seconds(2.1));
    c.RunFor(absl::Seconds(1));

    c.network().Cut(c.address(0), c.address(1));
    c.Restart(1);
    ASSERT_TRUE(c.node(1).Start().ok());
    c.RunFor(absl::Seconds(3));
    EXPECT_GT(c.step(1), 50);  // fresh, alone
    EXPECT_LT(c.step(1), c.step(0));
    EXPECT_EQ(c.log(1).Count<ports::StateTaken>(), 0);

    c.network().Heal(c.address(0), c.address(1));
    ASSERT_TRUE(
        c.RunUntil([&] { return c.log(1).Count<ports::StateTaken>() == 1; },
                   absl::Seconds(20)));
    c.RunFor(absl::Seconds(5));
    EXPECT_EQ(c.log(1).Count<ports::StateTaken>(), 1);
    EXPECT_EQ(c.log(0).Count<ports::StateTaken>(), 0);
    EXPECT_NEAR(static_cast<double>(c.step(1)), static_cast<double>(c.step(0)),
                60);

    // Later meetings move nothing.
    c.network().ResetLinks(c.address(0), c.address(1));
    c.RunFor(absl::Seconds(5));
    EXPECT_EQ(c.log(0).Count<ports::StateTaken>(), 0);
    EXPECT_EQ(c.log(1).Count<ports::StateTaken>(), 1);
  });
}

// A neighbour that is seen to come up is not ahead yet: it is as soon as it has
// a model from further on.
TEST(NodeFaults, ALonelyNodeTakesTheModelOfOneThatJoinedElsewhere) {
  ClusterOptions options;
  options.seed = 38;
  options.nodes = 3;
  RunTwice(options, [](SimCluster& c) {
    c.SetPlanEverywhere(c.MakePlan("pame"));
    c.network().Cut(c.address(0), c.address(2));
    c.Crash(1);
    ASSERT_TRUE(c.node(0).Start().ok());
    c.RunFor(absl::Seconds(10));
    ASSERT_TRUE(c.node(2).Start().ok());
    c.RunFor(absl::Seconds(3));
    ASSERT_GT(c.step(2), 50);  // fresh, alone
    c.Restart(1);
    ASSERT_TRUE(
        c.RunUntil([&] { return c.log(2).Count<ports::LinkUp>() > 0; }));
    c.RunFor(absl::Seconds(1));
    ASSERT_TRUE(c.node(1).Start().ok());
    c.RunFor(absl::Seconds(3));
    const auto joined = c.log(1).Of<ports::StateTaken>();
    ASSERT_EQ(joined.size(), 1U);
    EXPECT_EQ(joined[0].from, c.id(0));
    const auto followed = c.log(2).Of<ports::StateTaken>();
    ASSERT_EQ(followed.size(), 1U);
    EXPECT_EQ(followed[0].from, c.id(1));
    EXPECT_NEAR(static_cast<double>(c.step(2)), static_cast<double>(c.step(0)),
                60);
  });
}

// What it joined was no more than another's lonely start.
TEST(NodeFaults, AJoinerTakesTheModelOfOneThatIsFarAheadOfWhatItJoined) {
  ClusterOptions options;
  options.seed = 39;
  options.nodes = 3;
  RunTwice(options, [](SimCluster& c) {
    c.SetPlanEverywhere(c.MakePlan("pame"));
    c.network().Cut(c.address(0), c.address(1));
    c.network().Cut(c.address(0), c.address(2));
    ASSERT_TRUE(c.node(0).Start().ok());
    c.RunFor(absl::Seconds(20));
    ASSERT_TRUE(c.node(2).Start().ok());
    c.RunFor(absl::Seconds(5));
    ASSERT_TRUE(c.node(1).Start().ok());
    c.RunFor(absl::Seconds(1));
    const auto joined = c.log(1).Of<ports::StateTaken>();
    ASSERT_EQ(joined.size(), 1U);
    ASSERT_EQ(joined[0].from, c.id(2));
    ASSERT_GT(c.step(0), 2 * c.step(1));
    c.network().Heal(c.address(0), c.address(1));
    ASSERT_TRUE(
        c.RunUntil([&] { return c.log(1).Count<ports::StateTaken>() == 2; }));
    EXPECT_EQ(c.log(1).Of<ports::StateTaken>()[1].from, c.id(0));
    // And no third, of one in step.
    c.network().ResetLinks(c.address(0), c.address(1));
    c.RunFor(absl::Seconds(10));
    EXPECT_EQ(c.log(1).Count<ports::StateTaken>(), 2);
  });
}

TEST(NodeFaults, APausedNodeTakesNoModelFromANeighbourAhead) {
  ClusterOptions options;
  options.seed = 26;
  options.nodes = 2;
  RunTwice(options, [](SimCluster& c) {
    c.network().Cut(c.address(0), c.address(1));
    c.Run(c.MakePlan("pame"));
    c.RunFor(absl::Seconds(3));  // both fresh and unconfirmed
    ASSERT_TRUE(c.node(1).Pause().ok());
    c.RunFor(absl::Seconds(1));
    ASSERT_EQ(c.node(1).phase(), ports::Phase::kPaused);
    const int64_t step = c.step(1);
    c.network().Heal(c.address(0), c.address(1));
    c.RunFor(absl::Seconds(15));
    EXPECT_EQ(c.node(1).phase(), ports::Phase::kPaused);
    EXPECT_EQ(c.step(1), step);
  });
}

TEST(NodeFaults, AJoinerOverASlowLinkThatIsCutGetsTheWholeModel) {
  ClusterOptions options;
  options.seed = 27;
  options.nodes = 2;
  options.learner = [](int64_t) {
    return std::make_unique<simports::FakeLearner>(500'000, 10);
  };
  options.network.path.rate = 100e3;  // 2 MB in 20 s, beyond joining.stall
  options.gradient_delay = [](int64_t) { return absl::Milliseconds(200); };
  options.transfers.chunk_bytes = 64 << 10;
  RunTwice(options, [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("pame");
    c.SetPlanEverywhere(plan);
    c.Crash(1);
    ASSERT_TRUE(c.node(0).Start().ok());
    ASSERT_TRUE(c.RunToStep(10));
    c.Restart(1);
    ASSERT_TRUE(c.node(1).Start().ok());
    const std::vector<float> untouched = c.parameters(1);
    c.RunFor(absl::Seconds(11));
    const auto before = c.network().delivered(c.address(0), c.address(1));
    EXPECT_GT(before.bytes, 800'000);
    c.network().ResetLinks(c.address(0), c.address(1));
    c.RunFor(absl::Seconds(5));
    EXPECT_EQ(c.parameters(1), untouched);
    ASSERT_TRUE(
        c.RunUntil([&] { return c.log(1).Count<ports::StateTaken>() == 1; },
                   absl::Seconds(30)));
    // Gone on from where it was: one body, and chunks that the cut caught.
    const auto bytes = c.network().delivered(c.address(0), c.address(1)).bytes;
    EXPECT_GT(bytes, 2'000'000);
    EXPECT_LT(bytes, 2'000'000 + 3 * (64 << 10));
    EXPECT_EQ(c.parameters(1), c.parameters(0));
    EXPECT_EQ(c.log(1).Count<ports::LinkDown>(), 1);
  });
}

TEST(NodeFaults, AJoinerWhoseNeighbourDiesHalfWayStartsFromAnother) {
  ClusterOptions options;
  options.seed = 28;
  options.nodes = 3;
  options.learner = [](int64_t) {
    return std::make_unique<simports::FakeLearner>(100'000, 0);
  };
  options.network.path.rate = 200e3;  // 400 kB in 2 s
  options.gradient_delay = [](int64_t) { return absl::Milliseconds(50); };
  RunTwice(options, [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("local");
    c.SetPlanEverywhere(plan);
    c.Crash(2);
    ASSERT_TRUE(c.node(0).Start().ok());
    ASSERT_TRUE(c.node(1).Start().ok());
    ASSERT_TRUE(c.RunToStep(20));
    c.Restart(2);
    ASSERT_TRUE(c.node(2).Start().ok());
    c.RunFor(absl::Seconds(1));
    // Whoever gives its model dies with half of it given.
    const auto from_0 = c.network().delivered(c.address(0), c.address(2));
    const int64_t giver = from_0.bytes > 100'000 ? 0 : 1;
    c.Crash(giver);
    ASSERT_TRUE(
        c.RunUntil([&] { return c.log(2).Count<ports::StateTaken>() == 1; },
                   absl::Seconds(60)));
    EXPECT_EQ(c.log(2).Of<ports::StateTaken>()[0].from, c.id(1 - giver));
  });
}

TEST(NodeFaults, ALaggardJumpsToItsNeighboursRound) {
  ClusterOptions options;
  options.seed = 29;
  options.gradient_delay = [](int64_t i) {
    return absl::Milliseconds(i == 3 ? 100 : 10);
  };
  RunTwice(options, [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("d-psgd");
    plan.deadline.exchange = absl::Milliseconds(20);
    c.SetPlanEverywhere(plan);
    c.StartAll();
    c.RunFor(absl::Seconds(1));
    for (int64_t i = 0; i < 3; ++i) {
      c.network().Cut(c.address(i), c.address(3));
    }
    c.RunFor(absl::Seconds(5));
    const int64_t behind = c.step(3);
    EXPECT_GT(c.step(0), behind + 200);
    for (int64_t i = 0; i < 3; ++i) {
      c.network().Heal(c.address(i), c.address(3));
    }
    c.RunFor(absl::Seconds(15));
    EXPECT_NEAR(static_cast<double>(c.step(3)), static_cast<double>(c.step(0)),
                30);
    EXPECT_EQ(c.log(3).Count<ports::StateTaken>(), 0);
  });
}

ClusterOptions FarOptions(int64_t nodes) {
  ClusterOptions options;
  options.seed = 30;
  options.nodes = nodes;
  options.gradient_delay = [](int64_t i) {
    return absl::Milliseconds(i == 0 ? 100 : 5);
  };
  options.learner = [](int64_t) {
    return std::make_unique<simports::FakeLearner>(10, 0);
  };
  return options;
}

// Heard of for the first time, a neighbour ahead gives its model instead; so
// they have met before.
void Meet(SimCluster& c) {
  c.Run(c.MakePlan("d-psgd"));
  ASSERT_TRUE(c.RunToStep(3));
}

// It has no other, and what they were apart for explains the distance.
TEST(NodeFaults, AfterATimeApartOneNeighbourIsFollowed) {
  RunTwice(FarOptions(2), [](SimCluster& c) {
    Meet(c);
    c.network().Cut(c.address(0), c.address(1));
    c.RunFor(absl::Seconds(15));
    ASSERT_GT(c.step(1), c.step(0) + 1100);
    c.network().Heal(c.address(0), c.address(1));
    c.RunFor(absl::Seconds(5));
    EXPECT_NEAR(static_cast<double>(c.step(0)), static_cast<double>(c.step(1)),
                30);
    EXPECT_EQ(c.log(0).Count<ports::StateTaken>(), 0);
  });
}

TEST(NodeFaults, TwoNeighboursTogetherCan) {
  RunTwice(FarOptions(3), [](SimCluster& c) {
    Meet(c);
    c.network().Cut(c.address(0), c.address(1));
    c.network().Cut(c.address(0), c.address(2));
    c.RunFor(absl::Seconds(15));
    ASSERT_GT(c.step(1), c.step(0) + 1100);
    c.network().Heal(c.address(0), c.address(1));
    c.network().Heal(c.address(0), c.address(2));
    c.RunFor(absl::Seconds(15));
    EXPECT_NEAR(static_cast<double>(c.step(0)), static_cast<double>(c.step(1)),
                30);
  });
}

TEST(NodeFaults, ANodeThatCannotTrainMixesAndAnswersOnAndRecovers) {
  ClusterOptions options;
  options.seed = 31;
  options.nodes = 3;
  RunTwice(options, [](SimCluster& c) {
    c.SetPlanEverywhere(c.MakePlan(
        "pame", {{"kappa", core::IntRange{1, 1}}, {"nu", 1.0}, {"p", 1.0}}));
    for (int64_t i = 0; i < 3; ++i) {
      auto model = std::make_shared<Snapshot>();
      model->parameters.assign(1000, i == 1 ? 10.0F : 0.0F);
      model->buffers.assign(7, 0.0F);
      c.node(i).ReplaceModel(model, [](absl::Status status) {
        EXPECT_TRUE(status.ok()) << status;
      });
    }
    static_cast<simports::FakeLearner&>(c.learner(1))
        .FailWith(absl::InternalError("out of memory"));
    c.StartAll();
    c.RunFor(absl::Seconds(5));
    EXPECT_EQ(c.node(1).phase(), ports::Phase::kDegraded);
    EXPECT_EQ(c.node(1).Status().last_error, "out of memory");
    EXPECT_EQ(c.log(1).Count<ports::LearnerFailed>(), 1);
    EXPECT_NE(c.parameters(1)[0], 10.0F);  // mixes
    EXPECT_GT(ModelsFrom(c, 0, 1), 3);     // answers
    EXPECT_GT(c.node(1).algorithm()->step(), 30);
    // A round without a gradient is no step.
    EXPECT_EQ(c.node(1).Status().step, 0);
    EXPECT_GT(c.step(0), 30);  // and holds nobody up

    static_cast<simports::FakeLearner&>(c.learner(1))
        .FailWith(absl::OkStatus());
    c.RunFor(absl::Seconds(2));
    EXPECT_EQ(c.node(1).phase(), ports::Phase::kTraining);
    EXPECT_EQ(c.node(1).Status().last_error, "");

    static_cast<simports::FakeLearner&>(c.learner(1)).MakeNotFinite(true);
    c.RunFor(absl::Seconds(30));
    EXPECT_EQ(c.node(1).phase(), ports::Phase::kFailed);
    static_cast<simports::FakeLearner&>(c.learner(1)).MakeNotFinite(false);
    ASSERT_TRUE(c.node(1).Resume().ok());
    c.RunFor(absl::Seconds(3));
    EXPECT_EQ(c.node(1).phase(), ports::Phase::kTraining);
    for (const float w : c.parameters(1)) ASSERT_TRUE(std::isfinite(w));
  });
}

}  // namespace
}  // namespace dfl::runtime
