// Links that look well at one end only.
#include "daemon/runtime/membership/heartbeats.h"

#include "gtest/gtest.h"
#include "tests/unit/membership/path_node.h"

namespace dfl::runtime {
namespace {

const absl::Duration kBeat = HeartbeatOf(ports::Pace::kLan);

class HeartbeatsTest : public testing::Test {
 protected:
  // gRPC's own keepalive takes longer than a test.
  static simports::SimNetworkOptions Options() {
    simports::SimNetworkOptions options;
    options.keepalive_timeout = absl::Hours(1);
    return options;
  }
  void SetUp() override {
    for (PathNode* node : {&a_, &b_}) {
      node->standing.Stop();  // links by hand
      node->Set(a_.id, PathNetwork::MemberOf(a_));
      node->Set(b_.id, PathNetwork::MemberOf(b_));
    }
    ASSERT_TRUE(a_.links.AddAddress("b:1").ok());
    scheduler_.RunFor(absl::Seconds(1));
    ASSERT_TRUE(a_.IsLinked("b"));
  }

  simports::SimScheduler scheduler_;
  simports::SimNetwork network_{scheduler_, 1, Options()};
  PathNode a_{network_, "a"};
  PathNode b_{network_, "b"};
};

TEST_F(HeartbeatsTest, AQuietLinkStaysAndCostsAProbeABeat) {
  scheduler_.RunFor(60 * kBeat);
  EXPECT_TRUE(a_.downs.empty());
  EXPECT_TRUE(b_.downs.empty());
  EXPECT_GE(a_.beats + b_.beats, 50);
  EXPECT_LE(a_.beats + b_.beats, 121);
}

TEST_F(HeartbeatsTest, BothEndsAgreeWithinThreeBeatsThoughOneStillHears) {
  for (const bool from_a : {true, false}) {
    SCOPED_TRACE(from_a);
    a_.downs.clear();
    b_.downs.clear();
    scheduler_.RunFor(kBeat);
    network_.BlackHoleOneWay(from_a ? "a:1" : "b:1", from_a ? "b:1" : "a:1");
    EXPECT_TRUE(scheduler_.RunUntil(
        [&] { return !a_.IsLinked("b") && !b_.IsLinked("a"); },
        3 * kBeat + absl::Seconds(2)));
    network_.Heal("a:1", "b:1");
    EXPECT_TRUE(scheduler_.RunUntil(
        [&] { return a_.IsLinked("b") && b_.IsLinked("a"); },
        absl::Seconds(30)));
  }
}

TEST_F(HeartbeatsTest, ASilentMemberIsGivenUpAfterThreeBeats) {
  b_.deaf = true;
  b_.Forget(a_.id);  // it asks nothing itself
  scheduler_.RunFor(3 * kBeat - absl::Seconds(3));
  EXPECT_TRUE(a_.downs.empty());
  EXPECT_TRUE(scheduler_.RunUntil([&] { return !a_.downs.empty(); }, kBeat));
  EXPECT_TRUE(absl::IsUnavailable(a_.downs[0].second));
  // It is dialled again: somebody wants it.
  scheduler_.RunFor(absl::Seconds(2));
  EXPECT_TRUE(a_.IsLinked("b"));
}

TEST_F(HeartbeatsTest, WhoIsNoMemberIsNotAsked) {
  b_.deaf = true;
  a_.Forget(b_.id);
  b_.Forget(a_.id);
  scheduler_.RunFor(10 * kBeat);
  EXPECT_TRUE(a_.downs.empty());
}

// A process that its system has stopped has heard nobody, and that is not
// theirs.
TEST_F(HeartbeatsTest, AfterAStandstillNobodyIsGivenUp) {
  a_.loop.Freeze();
  scheduler_.RunFor(2 * kBeat);
  a_.loop.Thaw();
  scheduler_.RunFor(3 * kBeat);
  EXPECT_TRUE(a_.downs.empty());
}

}  // namespace
}  // namespace dfl::runtime
