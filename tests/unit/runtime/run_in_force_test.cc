// The plan in force, and what it means for this node in the present round.
#include "daemon/runtime/run_in_force.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/plan_topology.h"
#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

const NodeId kSelf("n000");

NodeId Name(int64_t i) {
  return NodeId(absl::StrCat("n", absl::Dec(i, absl::kZeroPad3)));
}

core::RunPlan PlanOf(int64_t members, const std::string& algorithm,
                     const std::string& kind) {
  core::RunPlan plan;
  plan.version = 1;
  plan.run_id = "run";
  plan.seed = 5;
  for (int64_t i = 0; i < members; ++i) {
    plan.members.push_back(core::MemberSpec{.node = Name(i)});
  }
  plan.model.kind = "linear";
  plan.model.classes = 0;
  plan.model.hidden.clear();
  plan.algorithm.name = algorithm;
  plan.topology.kind = kind;
  plan.codec.format = core::MessageFormat{};
  return plan;
}

// n0 meets n1 and then n2, each for two rounds; n2 and n3 meet throughout.
core::RunPlan Varying() {
  core::RunPlan plan = PlanOf(4, "decefl", "time-varying");
  plan.topology.edge_sets = {{{Name(0), Name(1)}, {Name(2), Name(3)}},
                             {{Name(0), Name(2)}, {Name(2), Name(3)}}};
  plan.topology.every = 2;
  return plan;
}

void Adopt(RunInForce& run, core::RunPlan plan, const NodeId& self = kSelf) {
  auto derived = core::CheckAndDerive(std::move(plan), self);
  ASSERT_TRUE(derived.ok()) << derived.status();
  run.Adopt(derived->checked.plan, derived->node);
}

std::vector<NodeId> Neighbours(const RunInForce& run) {
  std::vector<NodeId> names;
  for (const core::Neighbour& n : run.node().neighbours)
    names.push_back(n.node);
  return names;
}

TEST(RunInForceTest, BeforeItsFirstPlanItKnowsNobody) {
  RunInForce run(kSelf);
  EXPECT_FALSE(run.has_plan());
  EXPECT_EQ(run.plan_or_null(), nullptr);
  EXPECT_FALSE(run.IsNeighbour(Name(1)));
  EXPECT_FALSE(run.IsMember(Name(1)));
  EXPECT_FALSE(run.MayPush(Name(1)));
  EXPECT_TRUE(run.node().neighbours.empty());
  EXPECT_FALSE(run.contract().has_value());
  EXPECT_EQ(run.contract_digest(), core::ContractDigest{});
  core::DataContract contract;
  contract.model = "f";
  run.SetContract(contract);
  EXPECT_EQ(run.contract(), contract);
  EXPECT_EQ(run.contract_digest(), core::DigestOf(contract));
}

TEST(RunInForceTest, APlanThatIsAdoptedIsSharedAndTellsItsAlgorithm) {
  RunInForce run(kSelf);
  auto derived = core::CheckAndDerive(PlanOf(5, "decefl", "ring"), kSelf);
  ASSERT_TRUE(derived.ok()) << derived.status();
  run.Adopt(derived->checked.plan, derived->node);
  EXPECT_TRUE(run.has_plan());
  EXPECT_EQ(run.plan_or_null(), derived->checked.plan.get());
  EXPECT_EQ(run.plan().run_id, "run");
  EXPECT_EQ(run.algorithm()->name, "decefl");
  EXPECT_TRUE(run.lock_step());
  EXPECT_FALSE(run.gives_mass());
  Adopt(run, PlanOf(5, "k-gt", "ring"));
  EXPECT_TRUE(run.gives_mass());
  Adopt(run, PlanOf(5, "draco", "ring"));
  EXPECT_FALSE(run.lock_step());
}

TEST(RunInForceTest, AnEntryThatIsMissingIsOfNoKind) {
  RunInForce run(kSelf);
  run.Adopt(std::make_shared<core::RunPlan>(PlanOf(2, "decefl", "ring")), {});
  EXPECT_EQ(run.algorithm(), nullptr);
  EXPECT_FALSE(run.lock_step());
  EXPECT_FALSE(run.gives_mass());
}

TEST(RunInForceTest, NeighboursAreMembersWithAnEdge) {
  RunInForce run(kSelf);
  Adopt(run, PlanOf(5, "decefl", "ring"));
  EXPECT_EQ(Neighbours(run), (std::vector<NodeId>{Name(1), Name(4)}));
  EXPECT_TRUE(run.IsNeighbour(Name(4)));
  EXPECT_FALSE(run.IsNeighbour(Name(2)));
  EXPECT_TRUE(run.IsMember(Name(2)));
  EXPECT_FALSE(run.IsMember(NodeId("stranger")));
}

TEST(RunInForceTest, OnAFixedGraphNeighboursMayPush) {
  RunInForce run(kSelf);
  Adopt(run, PlanOf(5, "decefl", "ring"));
  EXPECT_TRUE(run.MayPush(Name(1)));
  EXPECT_FALSE(run.MayPush(Name(2)));
}

TEST(RunInForceTest, OnADirectedGraphOnlyInNeighboursMayPush) {
  core::RunPlan plan = PlanOf(3, "sgp", "explicit");
  plan.topology.directed = true;
  plan.topology.edges = {
      {Name(0), Name(1)}, {Name(1), Name(2)}, {Name(2), Name(0)}};
  RunInForce run(kSelf);
  Adopt(run, plan);
  EXPECT_TRUE(run.MayPush(Name(2)));
  EXPECT_FALSE(run.MayPush(Name(1)));
}

TEST(RunInForceTest, WhereTheGraphVariesAnyMemberMayPush) {
  RunInForce run(kSelf);
  Adopt(run, Varying());
  EXPECT_FALSE(run.IsNeighbour(Name(3)));
  EXPECT_TRUE(run.MayPush(Name(3)));
  EXPECT_FALSE(run.MayPush(NodeId("stranger")));
}

// Nodes whose members follow who is there need not know the same ones.
TEST(RunInForceTest, WhereMembersFollowTheNetworkAnyNodeOfTheRunIsHeard) {
  core::RunPlan plan = PlanOf(3, "d-psgd", "path");
  RunInForce fixed(kSelf);
  Adopt(fixed, plan);
  EXPECT_TRUE(fixed.Takes(Name(1)));
  EXPECT_FALSE(fixed.Takes(Name(2)));
  EXPECT_FALSE(fixed.MayTakePart(Name(7)));
  plan.participants.kind = core::ParticipantsSpec::Kind::kAll;
  RunInForce follows(kSelf);
  Adopt(follows, plan);
  EXPECT_TRUE(follows.follows_view());
  for (const int64_t i : {1, 2, 7}) {
    EXPECT_TRUE(follows.Takes(Name(i))) << i;
    EXPECT_TRUE(follows.MayTakePart(Name(i))) << i;
  }
  // And that is all: it is no neighbour, and no member.
  EXPECT_FALSE(follows.IsNeighbour(Name(2)));
  EXPECT_FALSE(follows.IsMember(Name(7)));
}

TEST(RunInForceTest, FollowsAGraphThatVaries) {
  RunInForce run(kSelf);
  Adopt(run, Varying());
  EXPECT_EQ(Neighbours(run), std::vector<NodeId>{Name(1)});
  EXPECT_FALSE(run.FollowTopology(1));
  EXPECT_TRUE(run.FollowTopology(2));
  EXPECT_EQ(Neighbours(run), std::vector<NodeId>{Name(2)});
  EXPECT_FALSE(run.FollowTopology(3));  // the same graph
  EXPECT_TRUE(run.FollowTopology(4));
  EXPECT_EQ(Neighbours(run), std::vector<NodeId>{Name(1)});
}

TEST(RunInForceTest, AnotherGraphMayLeaveANodeItsNeighbours) {
  RunInForce run(Name(3));
  Adopt(run, Varying(), Name(3));
  EXPECT_EQ(Neighbours(run), std::vector<NodeId>{Name(2)});
  // n2 has one neighbour more, which changes the weight.
  EXPECT_TRUE(run.FollowTopology(2));
  EXPECT_EQ(Neighbours(run), std::vector<NodeId>{Name(2)});
  core::RunPlan same = Varying();
  same.topology.edge_sets.insert(same.topology.edge_sets.begin(),
                                 same.topology.edge_sets.front());
  Adopt(run, same, Name(3));
  EXPECT_FALSE(run.FollowTopology(2));
}

TEST(RunInForceTest, AFixedGraphIsNeverFollowed) {
  RunInForce run(kSelf);
  Adopt(run, PlanOf(5, "decefl", "ring"));
  EXPECT_FALSE(run.FollowTopology(100));
  EXPECT_FALSE(run.IsOfLaterGraph(100, 0));
}

TEST(RunInForceTest, KnowsRoundsOfLaterGraphs) {
  RunInForce run(kSelf);
  Adopt(run, Varying());
  EXPECT_FALSE(run.IsOfLaterGraph(1, 0));
  EXPECT_TRUE(run.IsOfLaterGraph(2, 0));
  EXPECT_TRUE(run.IsOfLaterGraph(2, 1));
  EXPECT_FALSE(run.IsOfLaterGraph(3, 2));
  EXPECT_FALSE(run.IsOfLaterGraph(1, 2));
}

TEST(RunInForceTest, ANewPlanBeginsWithTheGraphOfRoundZero) {
  RunInForce run(kSelf);
  Adopt(run, Varying());
  ASSERT_TRUE(run.FollowTopology(2));
  Adopt(run, Varying());
  EXPECT_EQ(Neighbours(run), std::vector<NodeId>{Name(1)});
  EXPECT_TRUE(run.FollowTopology(2));
}

TEST(RunInForceTest, AnEdgeHasOneSeedInBothDirectionsAndInEachRoundAnother) {
  RunInForce run(kSelf);
  RunInForce peer(Name(1));
  Adopt(run, PlanOf(5, "decefl", "ring"));
  Adopt(peer, PlanOf(5, "decefl", "ring"), Name(1));
  const uint64_t seed = run.EdgeSeed(Name(1), 3);
  EXPECT_EQ(peer.EdgeSeed(kSelf, 3), seed);
  EXPECT_NE(run.EdgeSeed(Name(1), 4), seed);
  EXPECT_NE(run.EdgeSeed(Name(4), 3), seed);
  core::RunPlan other = PlanOf(5, "decefl", "ring");
  other.seed = 6;
  Adopt(run, other);
  EXPECT_NE(run.EdgeSeed(Name(1), 3), seed);
}

TEST(RunInForceTest, TheSpectralGapIsThatOfThePlanInForce) {
  RunInForce run(kSelf);
  for (const char* kind : {"ring", "complete"}) {
    const core::RunPlan plan = PlanOf(6, "decefl", kind);
    Adopt(run, plan);
    const auto topology = core::DeriveTopology(plan);
    ASSERT_TRUE(topology.ok()) << topology.status();
    EXPECT_EQ(run.SpectralGap(), core::SpectralGap(*topology)) << kind;
    EXPECT_GT(run.SpectralGap(), 0) << kind;
  }
  Adopt(run, PlanOf(257, "decefl", "ring"));
  EXPECT_EQ(run.SpectralGap(), 0);
}

}  // namespace
}  // namespace dfl::runtime
