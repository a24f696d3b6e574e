// Who stays linked with whom, and what is dialled for that.
#include "daemon/runtime/membership/standing_links.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/unit/membership/path_node.h"

namespace dfl::runtime {
namespace {

class StandingLinksTest : public testing::Test {
 protected:
  void RunFor(absl::Duration duration) { scheduler_.RunFor(duration); }

  static std::set<NodeId> LinkedOf(const PathNode& node) {
    const std::vector<NodeId> linked = node.routes.LinkedPeers();
    return {linked.begin(), linked.end()};
  }
  static std::set<NodeId> PairedOf(const PathNode& node) {
    const std::vector<NodeId> paired = node.standing.overlay().LinksOf(node.id);
    return {paired.begin(), paired.end()};
  }

  simports::SimScheduler scheduler_;
  simports::SimNetwork network_{scheduler_, 1, {}};
};

TEST_F(StandingLinksTest, MembersAreLinkedAsTheOverlaySaysAndNotElse) {
  for (const int undialable : {0, 3}) {
    SCOPED_TRACE(undialable);
    PathNetwork network(network_, 20, undialable);
    ASSERT_TRUE(network.Settle());
    RunFor(absl::Seconds(60));
    for (const auto& node : network.nodes) {
      EXPECT_EQ(LinkedOf(*node), PairedOf(*node)) << node->id.name();
      // One dial a pair: by the smaller name, or by who cannot be dialled.
      EXPECT_EQ(node->ups.size(), LinkedOf(*node).size()) << node->id.name();
      EXPECT_TRUE(node->downs.empty());
      for (const NodeId& other : LinkedOf(*node)) {
        const Member& there = *node->Find(other);
        const bool dials = there.facts.addresses.empty() ? false
                           : !node->transport.options().accepts_dials
                               ? true
                               : node->id < other;
        EXPECT_EQ(node->Link(other.name()).dialled_by_us, dials)
            << node->id.name() << " " << other.name();
      }
    }
  }
}

TEST_F(StandingLinksTest, TheLargerNameDialsWhenTheSmallerCannot) {
  PathNode a(network_, "a");
  PathNode b(network_, "b");
  a.Set(a.id, PathNetwork::MemberOf(a));
  a.Set(b.id, MemberAt("elsewhere:1"));
  b.Set(a.id, PathNetwork::MemberOf(a));
  b.Set(b.id, PathNetwork::MemberOf(b));
  RunFor(absl::Milliseconds(1100));
  EXPECT_FALSE(b.IsLinked("a"));
  RunFor(absl::Milliseconds(400));
  EXPECT_TRUE(b.IsLinked("a"));
  EXPECT_TRUE(b.Link("a").dialled_by_us);
}

TEST_F(StandingLinksTest, NeighboursStayLinkedAndOthersAreLetGo) {
  PathNetwork network(network_, 20);
  ASSERT_TRUE(network.Settle());
  PathNode& node = network[0];  // the smallest name: it dials
  NodeId far;
  for (const auto& other : network.nodes) {
    if (other->id != node.id && !node.IsLinked(other->id.name())) {
      far = other->id;
      break;
    }
  }
  node.standing.SetNeighbours({far});
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(node.IsLinked(far.name()));
  RunFor(absl::Seconds(120));
  EXPECT_TRUE(node.IsLinked(far.name()));
  node.standing.SetNeighbours({});
  RunFor(absl::Seconds(20));
  EXPECT_TRUE(node.IsLinked(far.name()));  // it may be wanted again
  RunFor(absl::Seconds(30));
  EXPECT_FALSE(node.IsLinked(far.name()));
  ASSERT_EQ(node.downs.size(), 1U);
  EXPECT_TRUE(absl::IsCancelled(node.downs[0].second));
  // What a person gave stays.
  ASSERT_TRUE(node.links.AddAddress(far.name() + ":1").ok());
  RunFor(absl::Seconds(120));
  EXPECT_TRUE(node.IsLinked(far.name()));
  EXPECT_EQ(node.downs.size(), 1U);
}

TEST_F(StandingLinksTest, WhomItHasToMeetIsLinkedForAsLongAsThatTakes) {
  PathNetwork network(network_, 20);
  ASSERT_TRUE(network.Settle());
  PathNode& node = network[0];
  NodeId far;
  for (const auto& other : network.nodes) {
    if (other->id != node.id && !node.IsLinked(other->id.name())) {
      far = other->id;
      break;
    }
  }
  node.standing.Meet({far, NodeId("stranger")});
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(node.IsLinked(far.name()));
  // Its neighbours are others.
  node.standing.SetNeighbours({});
  RunFor(absl::Seconds(120));
  EXPECT_TRUE(node.IsLinked(far.name()));
  node.standing.Meet({});
  RunFor(absl::Seconds(50));
  EXPECT_FALSE(node.IsLinked(far.name()));
}

TEST_F(StandingLinksTest, ACandidateIsDialledUntilAMemberHasAnsweredThere) {
  PathNode a(network_, "a");
  PathNode b(network_, "b");
  PathNode seed(network_, "seed");
  a.Set(a.id, PathNetwork::MemberOf(a));
  a.standing.SetCandidates("file", {"seed:1", "nobody:1"});
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(a.IsLinked("seed"));
  EXPECT_FALSE(a.failed.empty());  // nobody there, and dialled again
  const size_t tries = a.failed.size();
  RunFor(absl::Seconds(60));
  EXPECT_GT(a.failed.size(), tries);
  // Not a member yet, and wanted still.
  network_.ResetLinks("a:1", "seed:1");
  RunFor(absl::Seconds(5));
  EXPECT_TRUE(a.IsLinked("seed"));
  // A member now, whom membership looks after.
  a.Set(seed.id, PathNetwork::MemberOf(seed));
  RunFor(absl::Seconds(1));
  const auto& claims = a.links.addresses().at("seed:1").claims;
  EXPECT_EQ(claims.size(), 1U);
  EXPECT_EQ(claims.count("membership"), 1U);
  // It has gone: somebody may come there.
  Member dead = PathNetwork::MemberOf(seed);
  dead.state = ports::MemberState::kLeft;
  a.Set(seed.id, dead);
  RunFor(absl::Seconds(1));
  EXPECT_EQ(a.links.addresses().at("seed:1").claims.count("discovery"), 1U);
  // And another source may not take back what this one has found.
  a.standing.SetCandidates("dns", {"seed:1", "b:1"});
  a.standing.SetCandidates("file", {});
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(a.IsLinked("b"));
  EXPECT_EQ(a.links.addresses().count("seed:1"), 1U);
  EXPECT_EQ(a.links.addresses().count("nobody:1"), 0U);
  a.standing.SetCandidates("dns", {});
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(a.links.addresses().empty());
}

TEST_F(StandingLinksTest, TheOwnAddressInAListIsNoFailure) {
  PathNode a(network_, "a");
  a.Set(a.id, MemberAt("name-of-a:1"));  // it knows itself by another name
  a.standing.SetCandidates("file", {"a:1", "name-of-a:1"});
  RunFor(absl::Minutes(10));
  EXPECT_TRUE(a.unreachable.empty());
  EXPECT_LE(a.failed.size(), 1U);  // it was found out by one dial
  EXPECT_TRUE(a.links.addresses().at("a:1").own);
  EXPECT_EQ(a.links.addresses().at("a:1").last_error, "");
  EXPECT_EQ(a.links.addresses().count("name-of-a:1"), 0U);
}

TEST_F(StandingLinksTest, DeadMembersAreTriedEverMoreSeldom) {
  PathNode a(network_, "a");
  a.Set(a.id, PathNetwork::MemberOf(a));
  Member dead = MemberAt("b:1");
  dead.state = ports::MemberState::kDead;
  a.Set(NodeId("b"), dead);
  RunFor(absl::Minutes(1));
  const size_t first = a.failed.size();
  EXPECT_GE(first, 3U);
  EXPECT_LE(first, 10U);
  RunFor(absl::Minutes(59));
  EXPECT_LE(a.failed.size() - first, 30U);
  EXPECT_GE(a.failed.size() - first, 5U);
  // Nothing is left over between the tries.
  RunFor(absl::Seconds(11));
  EXPECT_LE(a.links.addresses().size(), 1U);
  // One that is back is found.
  PathNode b(network_, "b");
  EXPECT_TRUE(
      scheduler_.RunUntil([&] { return a.IsLinked("b"); }, absl::Minutes(10)));
}

TEST_F(StandingLinksTest, AMemberThatLeftIsNotTried) {
  PathNode a(network_, "a");
  a.Set(a.id, PathNetwork::MemberOf(a));
  Member left = MemberAt("b:1");
  left.state = ports::MemberState::kLeft;
  a.Set(NodeId("b"), left);
  RunFor(absl::Minutes(10));
  EXPECT_TRUE(a.failed.empty());
}

TEST_F(StandingLinksTest, ADeadMemberThatIsForgottenIsStillTried) {
  PathNode a(network_, "a");
  a.Set(a.id, PathNetwork::MemberOf(a));
  Member dead = MemberAt("b:1");
  dead.state = ports::MemberState::kDead;
  a.Set(NodeId("b"), dead);
  a.Forget(NodeId("b"));
  // One that died and has said goodbye since is not, nor one that did not die.
  Member gone = MemberAt("c:1");
  gone.state = ports::MemberState::kDead;
  a.Set(NodeId("c"), gone);
  gone.state = ports::MemberState::kLeft;
  a.Set(NodeId("c"), gone);
  a.Forget(NodeId("c"));
  a.Set(NodeId("d"), MemberAt("d:1"));
  a.Forget(NodeId("d"));
  RunFor(absl::Minutes(1));
  EXPECT_GE(a.failed.size(), 3U);
  for (const auto& [when, address] : a.failed) EXPECT_EQ(address, "b:1");
  // One that is back is found.
  PathNode b(network_, "b");
  ASSERT_TRUE(
      scheduler_.RunUntil([&] { return a.IsLinked("b"); }, absl::Minutes(10)));
  const auto& claims = a.links.addresses().at("b:1").claims;
  EXPECT_EQ(claims.size(), 1U);
  EXPECT_EQ(claims.count("members thought dead"), 1U);
}

TEST_F(StandingLinksTest, OfForgottenMembersTheLastAreTried) {
  PathNodeOptions options;
  options.standing.tried_at_once = 1000;
  PathNode a(network_, "a", options);
  a.Set(a.id, PathNetwork::MemberOf(a));
  constexpr size_t kTooMany = 6;
  for (size_t i = 0; i < StandingLinks::kMostLost + kTooMany; ++i) {
    const std::string name = absl::StrCat("m", i);
    Member dead = MemberAt(name + ":1");
    dead.state = ports::MemberState::kDead;
    a.Set(NodeId(name), dead);
    a.Forget(NodeId(name));
    RunFor(absl::Milliseconds(1));
  }
  RunFor(absl::Minutes(10));
  std::set<std::string> tried;
  for (const auto& [when, address] : a.failed) tried.insert(address);
  EXPECT_EQ(tried.size(), StandingLinks::kMostLost);
  for (size_t i = 0; i < kTooMany; ++i) {
    EXPECT_EQ(tried.count(absl::StrCat("m", i, ":1")), 0U) << i;
  }
}

// It may say any address, such as one where somebody else would answer.
TEST_F(StandingLinksTest, ACandidateIsDialledThoughALinkedPeerSaysItIsThere) {
  PathNode a(network_, "a");
  PathNode b(network_, "b", {.address = "seed:1"});
  a.Set(a.id, PathNetwork::MemberOf(a));
  a.Set(b.id, MemberAt("elsewhere:1"));
  a.standing.SetCandidates("file", {"seed:1"});
  ASSERT_TRUE(b.links.AddAddress("a:1").ok());
  RunFor(absl::Milliseconds(100));
  ASSERT_TRUE(a.IsLinked("b"));
  ASSERT_FALSE(a.Link("b").dialled_by_us);
  ASSERT_EQ(a.Link("b").address, "seed:1");
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(a.Link("b").dialled_by_us);
  EXPECT_EQ(a.ups.size(), 2U);
  // A member has answered there, so that is done.
  RunFor(absl::Seconds(20));
  EXPECT_EQ(a.links.addresses().count("seed:1"), 0U);
  EXPECT_TRUE(a.IsLinked("b"));
  EXPECT_EQ(a.ups.size(), 2U);
}

TEST_F(StandingLinksTest, OnceStoppedNothingIsDialled) {
  PathNode a(network_, "a");
  a.Set(a.id, PathNetwork::MemberOf(a));
  a.standing.SetCandidates("file", {"b:1"});
  a.Set(NodeId("c"), MemberAt("c:1"));
  RunFor(absl::Seconds(1));
  EXPECT_EQ(a.links.addresses().size(), 2U);
  a.standing.Stop();
  EXPECT_TRUE(a.links.addresses().empty());
  a.Forget(NodeId("c"));
  RunFor(absl::Seconds(20));
  EXPECT_TRUE(a.links.addresses().empty());
}

// What a person gives, and membership wants too.
TEST_F(StandingLinksTest, WhatAPersonTakesBackStaysLinkedForMembership) {
  PathNode a(network_, "a");
  PathNode b(network_, "b");
  a.Set(a.id, PathNetwork::MemberOf(a));
  a.Set(b.id, PathNetwork::MemberOf(b));
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  RunFor(absl::Seconds(1));
  ASSERT_TRUE(a.IsLinked("b"));
  ASSERT_TRUE(a.links.RemoveAddress("b:1").ok());
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(a.IsLinked("b"));
  EXPECT_TRUE(a.downs.empty());
}

}  // namespace
}  // namespace dfl::runtime
