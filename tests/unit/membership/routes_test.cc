// Frames to members that are not linked, and what a flood of them costs.
#include "daemon/runtime/membership/routes.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/membership/path_node.h"

namespace dfl::runtime {
namespace {

class RoutesTest : public testing::Test {
 protected:
  void RunFor(absl::Duration duration) { scheduler_.RunFor(duration); }

  static ports::ProbeFrame Probe(const PathNode& origin, const PathNode& target,
                                 uint64_t number, int32_t hops = 0) {
    ports::ProbeFrame probe;
    probe.route = {.origin = origin.id, .target = target.id, .hops = hops};
    probe.number = number;
    return probe;
  }

  simports::SimScheduler scheduler_;
  simports::SimNetwork network_{scheduler_, 1, {}};
};

// a - b - c, and the table says so to all.
class LineTest : public RoutesTest {
 protected:
  void Connect(PathNode& a, PathNode& b, PathNode& c) {
    for (PathNode* node : {&a, &b, &c}) {
      node->standing.Stop();  // links by hand
      for (const PathNode* other : {&a, &b, &c}) {
        node->Set(other->id, PathNetwork::MemberOf(*other));
      }
    }
    ASSERT_TRUE(a.links.AddAddress("b:1").ok());
    ASSERT_TRUE(b.links.AddAddress("c:1").ok());
    RunFor(absl::Seconds(1));
    ASSERT_FALSE(a.IsLinked("c"));
  }
};

TEST_F(LineTest, AProbeIsPassedOnAndItsOriginHasAReceiptAndAnAck) {
  PathNode a(network_, "a");
  PathNode b(network_, "b");
  PathNode c(network_, "c", {.memory = 77});
  Connect(a, b, c);
  ASSERT_TRUE(a.routes.SendVia(b.id, Probe(a, c, 5)).ok());
  RunFor(absl::Seconds(1));
  ASSERT_EQ(a.acks.size(), 2U);
  EXPECT_TRUE(a.acks[0].receipt);
  EXPECT_EQ(a.acks[0].route.origin, b.id);
  EXPECT_EQ(a.acks[0].number, 5U);
  EXPECT_FALSE(a.acks[1].receipt);
  EXPECT_EQ(a.acks[1].route.origin, c.id);
  EXPECT_EQ(a.acks[1].memory, 77U);
  EXPECT_EQ(a.acks[1].route.hops, 1);
  EXPECT_EQ(b.routes.counts().passed_on, 2);
}

// The direct link of the two is in doubt: the probe did not come over it.
TEST_F(LineTest, AnAckGoesTheWayOfItsProbeThoughItsTargetIsLinked) {
  PathNode a(network_, "a");
  PathNode b(network_, "b");
  PathNode c(network_, "c");
  Connect(a, b, c);
  ASSERT_TRUE(a.links.AddAddress("c:1").ok());
  RunFor(absl::Milliseconds(500));
  ASSERT_TRUE(a.IsLinked("c"));
  ASSERT_TRUE(a.routes.SendVia(b.id, Probe(a, c, 5)).ok());
  RunFor(absl::Milliseconds(500));
  ASSERT_EQ(a.acks.size(), 2U);
  EXPECT_TRUE(a.acks[0].receipt);
  EXPECT_EQ(a.acks[1].route.origin, c.id);
  EXPECT_EQ(a.acks[1].route.hops, 1);
  EXPECT_EQ(b.routes.counts().passed_on, 2);
  // Who brought it is not linked any more: straight to its target.
  ports::ProbeAckFrame ack;
  ack.route = {.origin = c.id, .target = a.id};
  ack.number = 6;
  ASSERT_TRUE(c.routes.SendBack(NodeId("gone"), ack).ok());
  RunFor(absl::Milliseconds(500));
  ASSERT_EQ(a.acks.size(), 3U);
  EXPECT_EQ(a.acks[2].number, 6U);
  EXPECT_EQ(a.acks[2].route.hops, 0);
}

TEST_F(LineTest, WithoutAWayItEndsAndDoesNotComeBack) {
  PathNode a(network_, "a");
  PathNode b(network_, "b");
  PathNode c(network_, "c");
  Connect(a, b, c);
  PathNode unlinked(network_, "d");
  // Of d nothing is known.
  ASSERT_TRUE(c.routes.SendVia(b.id, Probe(c, unlinked, 5)).ok());
  RunFor(absl::Seconds(1));
  EXPECT_EQ(b.routes.counts().no_way, 1);
  EXPECT_EQ(b.routes.counts().passed_on, 0);
  ASSERT_EQ(c.acks.size(), 1U);  // b has heard it
  EXPECT_TRUE(c.acks[0].receipt);
  EXPECT_TRUE(a.acks.empty());
  // It is a member, and is linked with nobody: it ends where nobody is left.
  for (PathNode* node : {&a, &b, &c}) node->Set(unlinked.id, MemberAt("d:1"));
  ASSERT_TRUE(c.routes.SendVia(b.id, Probe(c, unlinked, 6)).ok());
  RunFor(absl::Seconds(1));
  EXPECT_EQ(b.routes.counts().passed_on, 1);
  EXPECT_EQ(a.routes.counts().no_way, 1);  // not back to b
  // Nobody is linked with d itself.
  EXPECT_TRUE(absl::IsNotFound(unlinked.routes.Send(Probe(unlinked, a, 1))));
}

TEST_F(LineTest, AFrameThatHasPassedTooManyLinksIsDropped) {
  PathNode a(network_, "a");
  PathNode b(network_, "b");
  PathNode c(network_, "c");
  Connect(a, b, c);
  ASSERT_TRUE(a.links.Send(b.id, Probe(a, c, 5, ports::kMaxHops)).ok());
  ASSERT_TRUE(a.links.Send(b.id, Probe(a, c, 6, ports::kMaxHops - 1)).ok());
  // One of b's own that has come round.
  ASSERT_TRUE(a.links.Send(b.id, Probe(b, c, 7)).ok());
  RunFor(absl::Seconds(1));
  EXPECT_EQ(c.probes, 1);
  EXPECT_EQ(b.routes.counts().too_far, 2);
}

TEST_F(LineTest, OnePeersFloodIsBoundedAndOthersFramesPass) {
  PathNode a(network_, "a");
  PathNode b(network_, "b",
             {.allowance = {.at_once = 512 * 100, .each_second = 512 * 10}});
  PathNode c(network_, "c");
  Connect(a, b, c);
  c.answers = false;
  for (uint64_t i = 1; i <= 1000; ++i) {
    ASSERT_TRUE(a.links.Send(b.id, Probe(a, c, i)).ok());
  }
  RunFor(absl::Milliseconds(500));
  EXPECT_GE(c.probes, 100);
  EXPECT_LE(c.probes, 110);
  EXPECT_GE(b.routes.counts().over_allowance, 890);
  // Its allowance comes back, and c's was never touched by a's.
  ASSERT_TRUE(c.routes.SendVia(b.id, Probe(c, a, 1)).ok());
  RunFor(absl::Seconds(20));
  EXPECT_EQ(a.probes, 1);
  const int64_t before = c.probes;
  ASSERT_TRUE(a.links.Send(b.id, Probe(a, c, 2000)).ok());
  RunFor(absl::Seconds(1));
  EXPECT_EQ(c.probes, before + 1);
}

TEST_F(RoutesTest, EveryMemberReachesEveryOther) {
  for (const int undialable : {0, 3}) {
    PathNetwork network(network_, 24, undialable);
    ASSERT_TRUE(network.Settle());
    int64_t sent = 0;
    for (const auto& from : network.nodes) {
      for (const auto& to : network.nodes) {
        if (from == to) continue;
        EXPECT_TRUE(from->routes.Send(Probe(*from, *to, 1)).ok());
        ++sent;
      }
    }
    RunFor(absl::Seconds(2));
    int64_t came = 0;
    int64_t acked = 0;
    for (const auto& node : network.nodes) {
      came += node->probes;
      for (const ports::ProbeAckFrame& ack : node->acks) acked += !ack.receipt;
    }
    EXPECT_EQ(came, sent);
    EXPECT_EQ(acked, sent);
  }
}

}  // namespace
}  // namespace dfl::runtime
