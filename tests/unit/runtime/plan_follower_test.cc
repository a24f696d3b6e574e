// Whole nodes whose plan names nobody: who takes part is who is there.
#include "daemon/runtime/following/plan_follower.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

using ports::Phase;
using testing::ElementsAre;

ClusterOptions Gossiping(int64_t nodes) {
  ClusterOptions options;
  options.nodes = nodes;
  options.membership = true;
  return options;
}

core::RunPlan PlanForAll(const SimCluster& cluster,
                         const std::string& algorithm,
                         core::KnobValues knobs = {}) {
  core::RunPlan plan = cluster.MakePlan(algorithm, std::move(knobs));
  plan.members.clear();
  plan.participants.kind = core::ParticipantsSpec::Kind::kAll;
  plan.topology.kind = "auto";
  return plan;
}

std::vector<std::string> MembersOf(SimCluster& cluster, int64_t i) {
  std::vector<std::string> names;
  const core::RunPlan* plan = cluster.node(i).plan_in_force();
  if (plan == nullptr) return names;
  for (const core::MemberSpec& member : plan->members) {
    names.push_back(member.node.name());
  }
  return names;
}

bool AllHave(SimCluster& cluster, size_t members) {
  for (int64_t i = 0; i < cluster.size(); ++i) {
    if (cluster.up(i) && MembersOf(cluster, i).size() != members) return false;
  }
  return true;
}

// Each node is given the plan as soon as it has started, when it knows nobody.
TEST(PlanFollower, NodesThatFindEachOtherMixUnderOneVersionOfThePlan) {
  RunTwice(Gossiping(4), [](SimCluster& cluster) {
    cluster.Run(PlanForAll(cluster, "d-psgd"));
    ASSERT_TRUE(cluster.RunUntil([&] { return AllHave(cluster, 4); },
                                 absl::Seconds(10)));
    ASSERT_TRUE(cluster.RunToStep(50));
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_GT(cluster.node(i).models_received(), 0) << i;
      EXPECT_EQ(cluster.node(i).plan()->version, 1u);
      // A plan is told of once, though its members have come since.
      EXPECT_EQ(cluster.log(i).Count<ports::PlanAdopted>(), 1) << i;
      EXPECT_TRUE(cluster.follower(i).problem().ok());
    }
  });
}

TEST(PlanFollower, OneThatDiesIsWaitedForNoLongerAndTakesPartAgainOnceBack) {
  RunTwice(Gossiping(4), [](SimCluster& cluster) {
    cluster.Run(PlanForAll(cluster, "d-psgd"));
    ASSERT_TRUE(cluster.RunUntil([&] { return AllHave(cluster, 4); },
                                 absl::Seconds(10)));
    cluster.Crash(3);
    ASSERT_TRUE(cluster.RunUntil([&] { return AllHave(cluster, 3); },
                                 absl::Seconds(60)));
    EXPECT_THAT(MembersOf(cluster, 0), ElementsAre("n0", "n1", "n2"));
    const int64_t before = cluster.LowestStep();
    ASSERT_TRUE(cluster.RunToStep(before + 20));
    cluster.Restart(3);
    ASSERT_TRUE(cluster.node(3).Start().ok());
    ASSERT_TRUE(cluster.RunUntil([&] { return AllHave(cluster, 4); },
                                 absl::Seconds(60)));
    ASSERT_TRUE(cluster.RunUntil(
        [&] { return cluster.node(3).phase() == Phase::kTraining; },
        absl::Seconds(10)));
    ASSERT_TRUE(cluster.RunToStep(cluster.step(0) + 20));
    EXPECT_GT(cluster.node(3).models_received(), 0);
  });
}

// A leaver is out at once, and a mass ledger closes over it.
TEST(PlanFollower, MassIsConservedAmongThoseWhoStay) {
  RunTwice(Gossiping(4), [](SimCluster& cluster) {
    cluster.Run(PlanForAll(cluster, "push-pull"));
    ASSERT_TRUE(cluster.RunUntil([&] { return AllHave(cluster, 4); },
                                 absl::Seconds(10)));
    ASSERT_TRUE(cluster.RunToStep(20));
    cluster.membership(2).Leave();
    cluster.RunFor(absl::Milliseconds(50));
    cluster.Crash(2);
    ASSERT_TRUE(cluster.RunUntil([&] { return AllHave(cluster, 3); },
                                 absl::Seconds(5)));
    const int64_t before = cluster.LowestStep();
    ASSERT_TRUE(cluster.RunToStep(before + 50));
    uint64_t epoch = 0;
    for (const int64_t i : {0, 1, 3}) {
      const uint64_t own = cluster.node(i).parcels().epoch();
      if (epoch == 0) epoch = own;
      EXPECT_EQ(own, epoch) << i;
      EXPECT_EQ(cluster.node(i).phase(), Phase::kTraining);
    }
    EXPECT_GT(epoch, 1u);
  });
}

TEST(PlanFollower, AnObserverTrainsNothingAndIsNobodysNeighbour) {
  ClusterOptions options = Gossiping(3);
  options.facts = [](int64_t i) {
    ports::MemberFacts facts;
    if (i == 2) facts.participation = core::Participation::kObserve;
    return facts;
  };
  RunTwice(options, [](SimCluster& cluster) {
    cluster.Run(PlanForAll(cluster, "d-psgd"));
    ASSERT_TRUE(cluster.RunUntil([&] { return AllHave(cluster, 2); },
                                 absl::Seconds(10)));
    cluster.RunFor(absl::Seconds(3));
    EXPECT_EQ(cluster.node(2).phase(), Phase::kIdle);
    EXPECT_EQ(cluster.log(2).Count<ports::StepFinished>(), 0);
    EXPECT_GT(cluster.step(0), 50);
    // It wants to train now, as it was ordered to long ago.
    ports::MemberFacts facts = cluster.membership(2).facts();
    facts.participation = core::Participation::kTrain;
    cluster.membership(2).SetFacts(facts);
    ASSERT_TRUE(cluster.RunUntil(
        [&] { return cluster.node(2).phase() == Phase::kTraining; },
        absl::Seconds(10)));
    ASSERT_TRUE(cluster.RunUntil([&] { return AllHave(cluster, 3); },
                                 absl::Seconds(10)));
  });
}

// Its model moves by what it hears, and by nothing else.
TEST(PlanFollower, OneThatMixesWithoutDataTakesNoGradient) {
  ClusterOptions options = Gossiping(3);
  options.facts = [](int64_t i) {
    ports::MemberFacts facts;
    if (i == 2) facts.participation = core::Participation::kMix;
    return facts;
  };
  RunTwice(options, [](SimCluster& cluster) {
    cluster.Run(PlanForAll(cluster, "d-psgd"));
    ASSERT_TRUE(cluster.RunUntil([&] { return AllHave(cluster, 3); },
                                 absl::Seconds(10)));
    ASSERT_TRUE(cluster.RunToStep(50));
    EXPECT_EQ(cluster.node(2).phase(), Phase::kTraining);
    // No gradient, so no loss of one.
    EXPECT_FALSE(cluster.log(2).Of<ports::StepFinished>().back().loss);
    EXPECT_GT(cluster.node(2).models_received(), 50);
    EXPECT_GT(cluster.node(0).models_received(), 50);
  });
}

// It may have no data, and then nothing to learn with.
TEST(PlanFollower, AnObserverNeedsNoLearner) {
  ClusterOptions options = Gossiping(2);
  options.facts = [](int64_t i) {
    ports::MemberFacts facts;
    if (i == 1) facts.participation = core::Participation::kObserve;
    return facts;
  };
  SimCluster cluster(options);
  const core::RunPlan plan = PlanForAll(cluster, "d-psgd");
  const auto watching =
      DeriveAmong(plan, cluster.follower(1).Present(), cluster.id(1));
  ASSERT_TRUE(watching.ok()) << watching.status();
  ASSERT_TRUE(cluster.node(1).SetPlan(*watching, nullptr).ok());
  cluster.follower(1).Follow(std::make_shared<const core::RunPlan>(plan),
                             *watching);
  EXPECT_TRUE(cluster.node(1).Start().ok());
  ASSERT_TRUE(cluster.SetPlan(0, plan).ok());
  ASSERT_TRUE(cluster.node(0).Start().ok());
  cluster.RunFor(absl::Seconds(5));
  EXPECT_EQ(cluster.node(1).phase(), Phase::kIdle);
  EXPECT_EQ(cluster.node(1).Status().plan_version, 1u);
  EXPECT_GT(cluster.step(0), 50);
  // To train it would need one.
  ports::MemberFacts facts = cluster.membership(1).facts();
  facts.participation = core::Participation::kTrain;
  cluster.membership(1).SetFacts(facts);
  cluster.RunFor(absl::Seconds(1));
  EXPECT_EQ(cluster.follower(1).problem().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(cluster.node(1).phase(), Phase::kIdle);
}

TEST(PlanFollower,
     ADrainingNodePausesAtABoundaryAndTrainsOnWhenItNoLongerDoes) {
  RunTwice(Gossiping(3), [](SimCluster& cluster) {
    cluster.Run(PlanForAll(cluster, "d-psgd"));
    ASSERT_TRUE(cluster.RunUntil([&] { return AllHave(cluster, 3); },
                                 absl::Seconds(10)));
    ASSERT_TRUE(cluster.RunToStep(20));
    ports::MemberFacts facts = cluster.membership(1).facts();
    const ports::Condition before = facts.condition;
    facts.condition = ports::Condition::kDraining;
    cluster.membership(1).SetFacts(facts);
    ASSERT_TRUE(cluster.RunUntil(
        [&] {
          return cluster.node(1).phase() == Phase::kPaused &&
                 AllHave(cluster, 2);
        },
        absl::Seconds(5)));
    const int64_t at = cluster.step(1);
    ASSERT_TRUE(cluster.RunUntil([&] { return cluster.step(0) > at + 20; },
                                 absl::Seconds(10)));
    EXPECT_EQ(cluster.step(1), at);
    facts.condition = before;
    cluster.membership(1).SetFacts(facts);
    ASSERT_TRUE(cluster.RunUntil([&] { return cluster.step(1) > at + 20; },
                                 absl::Seconds(10)));
  });
}

// Nothing can be derived while one has not said its rows: the plan stays as it
// is, and the reason is there.
TEST(PlanFollower, WhatCannotBeHadLeavesThePlanAsItIs) {
  ClusterOptions options = Gossiping(3);
  options.facts = [](int64_t i) {
    ports::MemberFacts facts;
    facts.rows = i == 2 ? 0 : 100;
    return facts;
  };
  SimCluster cluster(options);
  for (int64_t i = 0; i < 2; ++i) {
    const absl::Status set = cluster.SetPlan(
        i, PlanForAll(cluster, "decefl", {{"sample_weighting", true}}));
    ASSERT_TRUE(set.ok()) << set;
    ASSERT_TRUE(cluster.node(i).Start().ok());
  }
  cluster.RunFor(absl::Seconds(3));
  EXPECT_FALSE(cluster.follower(0).problem().ok());
  EXPECT_EQ(cluster.node(0).phase(), Phase::kTraining);
  ports::MemberFacts facts = cluster.membership(2).facts();
  facts.rows = 50;
  cluster.membership(2).SetFacts(facts);
  ASSERT_TRUE(cluster.RunUntil(
      [&] {
        return MembersOf(cluster, 0).size() == 3 &&
               MembersOf(cluster, 1).size() == 3;
      },
      absl::Seconds(5)));
  EXPECT_TRUE(cluster.follower(0).problem().ok());
}

TEST(PlanFollower, TheProblemIsOverWhenTheMembersAreThoseThatTheNodeHas) {
  ClusterOptions options = Gossiping(3);
  options.facts = [](int64_t i) {
    ports::MemberFacts facts;
    facts.rows = i == 2 ? 0 : 100;
    if (i == 2) facts.participation = core::Participation::kObserve;
    return facts;
  };
  SimCluster cluster(options);
  for (int64_t i = 0; i < 2; ++i) {
    const absl::Status set = cluster.SetPlan(
        i, PlanForAll(cluster, "decefl", {{"sample_weighting", true}}));
    ASSERT_TRUE(set.ok()) << set;
    ASSERT_TRUE(cluster.node(i).Start().ok());
  }
  ASSERT_TRUE(cluster.RunUntil(
      [&] { return MembersOf(cluster, 0).size() == 2; }, absl::Seconds(5)));
  const auto say = [&](core::Participation participation) {
    ports::MemberFacts facts = cluster.membership(2).facts();
    facts.participation = participation;
    cluster.membership(2).SetFacts(facts);
    cluster.RunFor(absl::Seconds(3));
  };
  // It wants to train, and does not say its rows; and thinks better of it.
  for (int i = 0; i < 2; ++i) {
    say(core::Participation::kTrain);
    EXPECT_FALSE(cluster.follower(0).problem().ok()) << i;
    say(core::Participation::kObserve);
    EXPECT_TRUE(cluster.follower(0).problem().ok())
        << cluster.follower(0).problem();
    EXPECT_THAT(MembersOf(cluster, 0), ElementsAre("n0", "n1"));
  }
}

// Without membership a plan for all is one for the node itself.
TEST(PlanFollower, WithoutMembershipANodeKnowsItselfAlone) {
  ClusterOptions options;
  options.nodes = 1;
  SimCluster cluster(options);
  ASSERT_EQ(cluster.follower(0).Present().size(), 1u);
  EXPECT_EQ(cluster.follower(0).Present()[0].node.name(), "n0");
}

TEST(PlanFollower, WhoIsThereIsWhoIsAliveOrSuspectAndDoesNotDrain) {
  std::map<NodeId, Member> members;
  members[NodeId("alive")].facts.addresses = {"a:1"};
  members[NodeId("dead")].state = ports::MemberState::kDead;
  members[NodeId("drains")].facts.condition = ports::Condition::kDraining;
  members[NodeId("left")].state = ports::MemberState::kLeft;
  members[NodeId("suspect")].state = ports::MemberState::kSuspect;
  const std::vector<core::MemberSpec> present = PresentAmong(members);
  ASSERT_EQ(present.size(), 2u);
  EXPECT_EQ(present[0].node.name(), "alive");
  EXPECT_TRUE(present[0].dialable);
  EXPECT_EQ(present[1].node.name(), "suspect");
  EXPECT_FALSE(present[1].dialable);
}

}  // namespace
}  // namespace dfl::runtime
