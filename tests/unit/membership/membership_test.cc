#include "daemon/runtime/membership/membership.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/runtime/membership/heartbeats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/membership/member_net.h"
#include "tests/unit/membership/scenarios.h"
#include "tests/unit/runtime/raw_peer.h"

namespace dfl::runtime {
namespace {

using ports::MemberIncarnation;
using ports::MembersDigestFrame;
using ports::MembersFrame;
using ports::MemberState;
using ports::MemberUpdate;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

MemberUpdate Update(const std::string& node, MemberIncarnation incarnation,
                    MemberState state, const std::string& by = "") {
  MemberUpdate update;
  update.node = NodeId(node);
  update.incarnation = incarnation;
  update.state = state;
  update.by = NodeId(by);
  if (state == MemberState::kAlive) update.facts = ports::MemberFacts();
  return update;
}

MembersFrame FrameOf(MemberUpdate update) {
  MembersFrame frame;
  frame.members.push_back(std::move(update));
  return frame;
}

TEST(Membership, TwoSeedsMakeOneComponent) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_TRUE(TwoSeedsMakeOneComponent(8, seed)) << "seed " << seed;
  }
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    EXPECT_TRUE(TwoSeedsMakeOneComponent(64, seed)) << "seed " << seed;
  }
}

TEST(Membership, ADeadNodeIsSeenByAllWithin5Seconds) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    MemberNet net(seed);
    net.BootMany(64);
    ASSERT_TRUE(net.AgreeWithin(absl::Seconds(5)));
    net.RunFor(absl::Seconds(3) * net.rng().Uniform());
    net.Kill("n0007");
    EXPECT_TRUE(net.GoneWithin("n0007", absl::Seconds(5))) << "seed " << seed;
    net.RunFor(absl::Seconds(30));
    EXPECT_TRUE(net.Agree());
    for (const auto& [name, node] : net.nodes()) {
      // One line, not one for each suspicion.
      EXPECT_EQ(node->CountOf("n0007", false), 1) << name;
      EXPECT_EQ(node->told().at(NodeId("n0007")), MemberState::kDead);
    }
    EXPECT_THAT(net.Losses(), SizeIs(63));
  }
}

// Its links stay up and nothing comes over them.
TEST(Membership, ANodeThatHangsIsFoundAndComesBackWhenItRunsAgain) {
  MemberNet net(3);
  net.BootMany(32);
  ASSERT_TRUE(net.AgreeWithin(absl::Seconds(5)));
  net.RunFor(absl::Seconds(10));
  net.ForEachPair("n0004", [&](const auto& a, const auto& b) {
    net.network().BlackHole(a, b);
  });
  net.node("n0004").loop().Freeze();
  EXPECT_TRUE(net.GoneWithin("n0004", absl::Seconds(15)));
  net.ForEachPair(
      "n0004", [&](const auto& a, const auto& b) { net.network().Heal(a, b); });
  net.node("n0004").loop().Thaw();
  EXPECT_TRUE(net.AgreeWithin(absl::Seconds(20)));
  // It did not run, and blames nobody for that.
  for (const auto& change : net.node("n0004").changes()) {
    EXPECT_TRUE(change.present) << change.node.name() << " " << change.text;
  }
  EXPECT_EQ(net.node("n0001").changes().back().text, "is back");
}

TEST(Membership, AThrottledNodeCausesNoFalseDeathOfOthers) {
  for (const int cost : {25, 100, 200}) {
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      SCOPED_TRACE(absl::StrCat("cost ", cost, " ms, seed ", seed));
      MemberNet net(seed);
      const auto names = net.BootMany(64);
      MemberNodeOptions slow;
      slow.starts = 2;
      slow.cost = absl::Milliseconds(cost);
      for (const std::string& name : {names[5], names[40]}) {
        net.BootSeeded(name, slow);
      }
      net.RunFor(absl::Seconds(60));
      net.ForgetChanges();
      net.RunFor(absl::Minutes(5));
      for (const auto& [name, node] : net.nodes()) {
        for (const auto& change : node->changes()) {
          EXPECT_TRUE(change.present || change.node.name() == names[5] ||
                      change.node.name() == names[40])
              << name << ": " << change.node.name() << " " << change.text;
        }
      }
      // Of the others a dead one is still found.
      net.Kill(names[20]);
      EXPECT_TRUE(net.Within(absl::Seconds(5), [&] {
        return !net.node(names[1]).Sees(names[20]);
      }));
    }
  }
}

TEST(Membership, ASlowNodeDoubtsItself) {
  MemberNet net;
  net.BootMany(16);
  MemberNodeOptions slow;
  slow.starts = 2;
  slow.cost = absl::Milliseconds(150);
  net.BootSeeded("n0003", slow);
  net.RunFor(absl::Minutes(1));
  EXPECT_GE(net.node("n0003").membership().health(), 1);
  EXPECT_EQ(net.node("n0004").membership().health(), 0);
}

TEST(Membership, UnderWanWeatherNobodyIsDeadWhoIsNot) {
  WanWeather weather(32, 5);
  const WanResult result = weather.Run(absl::Minutes(5));
  EXPECT_TRUE(result.formed);
  EXPECT_THAT(result.losses, IsEmpty());
  EXPECT_GT(result.stalls, 30);
  EXPECT_GT(result.resets, 300);
  EXPECT_LT(result.detection, absl::Seconds(60));
}

TEST(Membership, TheSameSeedGivesTheSameTrace) {
  const auto trace = [](uint64_t seed) {
    WanWeather weather(16, seed);
    weather.Run(absl::Minutes(1));
    return weather.trace();
  };
  EXPECT_EQ(trace(7), trace(7));
  EXPECT_NE(trace(7), trace(8));
}

TEST(Membership, TwoPacesLiveTogether) {
  simports::SimNetworkOptions options;
  options.path.delay = absl::Milliseconds(20);
  MemberNet net(4, options);
  MemberNodeOptions wan;
  wan.pace = ports::Pace::kWan;
  std::vector<std::string> names;
  for (int i = 0; i < 24; ++i) {
    names.push_back(MemberNet::NameOf(i));
    net.BootSeeded(names.back(), i % 3 == 0 ? wan : MemberNodeOptions());
  }
  ASSERT_TRUE(net.AgreeWithin(absl::Seconds(5)));
  net.RunFor(absl::Seconds(10));
  // Nothing passes to or from a patient one for 4 s, to which the others give
  // the time that it asks for.
  net.ForEachPair(names[9], [&](const auto& a, const auto& b) {
    net.network().BlackHole(a, b);
  });
  net.RunFor(absl::Seconds(4));
  net.ForEachPair(names[9], [&](const auto& a, const auto& b) {
    net.network().Heal(a, b);
  });
  net.RunFor(absl::Minutes(2));
  EXPECT_THAT(net.Losses(), IsEmpty());
  net.Kill(names[4]);
  EXPECT_TRUE(net.GoneWithin(names[4], absl::Seconds(60)));
}

TEST(Membership, ASplitNetworkBecomesOneAgain) {
  MemberNet net;
  const auto names = net.BootMany(8);
  ASSERT_TRUE(net.AgreeWithin(absl::Seconds(5)));
  const auto each = [&](const auto& f) {
    for (int a = 0; a < 3; ++a) {
      for (int b = 3; b < 8; ++b) f(names[a] + ":1", names[b] + ":1");
    }
  };
  each([&](const auto& a, const auto& b) { net.network().Cut(a, b); });
  net.RunFor(absl::Minutes(1));
  EXPECT_THAT(net.node(names[0]).Present(),
              ElementsAre(names[0], names[1], names[2]));
  EXPECT_THAT(net.node(names[5]).Present(), SizeIs(5));
  // What is said meanwhile comes to all in the end.
  ports::MemberFacts facts = net.node(names[6]).membership().facts();
  facts.rows = 42;
  net.node(names[6]).membership().SetFacts(facts);
  net.ForgetChanges();
  each([&](const auto& a, const auto& b) { net.network().Heal(a, b); });
  EXPECT_TRUE(net.AgreeWithin(absl::Seconds(30)));
  EXPECT_EQ(net.node(names[0]).Find(names[6])->facts.rows, 42);
  // Nobody who is there is lost on the way.
  EXPECT_THAT(net.Losses(), IsEmpty());
}

TEST(Membership, FactsOfANodeComeToAllOnce) {
  MemberNet net;
  net.BootMany(32);
  ASSERT_TRUE(net.AgreeWithin(absl::Seconds(5)));
  net.RunFor(absl::Seconds(20));
  ports::MemberFacts facts = net.node("n0003").membership().facts();
  facts.condition = ports::Condition::kDegraded;
  facts.reason = "no model file";
  net.node("n0003").membership().SetFacts(facts);
  net.RunFor(absl::Milliseconds(200));
  for (const auto& [name, node] : net.nodes()) {
    EXPECT_EQ(node->Find("n0003")->facts, facts) << name;
  }
  // The same again is no news.
  const int64_t frames = net.network().sent().frames;
  net.node("n0003").membership().SetFacts(facts);
  net.RunFor(absl::Milliseconds(30));
  EXPECT_LT(net.network().sent().frames - frames, 32);
}

TEST(Membership, WhoLeavesIsGoneAtOnceAndForgottenLater) {
  MemberNet net;
  net.BootMany(32);
  ASSERT_TRUE(net.AgreeWithin(absl::Seconds(5)));
  net.ForgetChanges();
  net.node("n0009").membership().Leave();
  net.RunFor(absl::Milliseconds(100));  // its process ends a little later
  net.Kill("n0009");
  EXPECT_TRUE(net.GoneWithin("n0009", absl::Milliseconds(300)));
  net.RunFor(absl::Minutes(1));
  for (const auto& [name, node] : net.nodes()) {
    ASSERT_THAT(node->changes(), SizeIs(1)) << name;
    EXPECT_EQ(node->changes()[0].text, "left") << name;
    EXPECT_EQ(node->Find("n0009")->state, MemberState::kLeft);
  }
  net.RunFor(PresetOf(ports::Pace::kLan).forget);
  for (const auto& [name, node] : net.nodes()) {
    EXPECT_EQ(node->Find("n0009"), nullptr) << name;
    EXPECT_EQ(node->told().count(NodeId("n0009")), 0U);
    EXPECT_THAT(node->members(), SizeIs(31));
  }
  // And it may come again.
  MemberNodeOptions again;
  again.starts = 2;
  net.BootSeeded("n0009", again);
  EXPECT_TRUE(net.AgreeWithin(absl::Seconds(2)));
}

TEST(Membership, TablesShrinkBackAfterManyJoinsAndLeaves) {
  MemberNet net;
  net.BootMany(16);
  ASSERT_TRUE(net.AgreeWithin(absl::Seconds(5)));
  for (int i = 0; i < 200; ++i) {
    const std::string name = absl::StrCat("guest-", i);
    MemberNode& guest = net.BootSeeded(name);
    ASSERT_TRUE(net.AgreeWithin(absl::Seconds(2))) << name;
    if (i % 2 == 0) {
      guest.membership().Leave();
      net.RunFor(absl::Milliseconds(50));
    }
    net.Kill(name);
    ASSERT_TRUE(net.AgreeWithin(absl::Seconds(6))) << name;
  }
  net.RunFor(PresetOf(ports::Pace::kLan).forget + absl::Seconds(5));
  EXPECT_TRUE(net.Agree());
  for (const auto& [name, node] : net.nodes()) {
    EXPECT_THAT(node->members(), SizeIs(16)) << name;
    EXPECT_THAT(node->told(), SizeIs(15)) << name;  // all others
  }
}

TEST(Membership, ARestartWithAWipedDiskIsBelieved) {
  MemberNet net;
  MemberNodeOptions often;
  often.starts = 7;
  net.BootMany(16, often);
  ASSERT_TRUE(net.AgreeWithin(absl::Seconds(5)));
  for (const bool dead_first : {false, true}) {
    net.Kill("n0005");
    if (dead_first) {
      ASSERT_TRUE(net.GoneWithin("n0005", absl::Seconds(10)));
    }
    MemberNodeOptions wiped;
    wiped.starts = 1;
    wiped.memory = 77 + (dead_first ? 1 : 0);
    net.BootSeeded("n0005", wiped);
    ASSERT_TRUE(net.AgreeWithin(absl::Seconds(10)));
    net.RunFor(absl::Seconds(30));
    EXPECT_TRUE(net.Agree());
    for (const auto& [name, node] : net.nodes()) {
      EXPECT_EQ(node->Find("n0005")->facts.memory, wiped.memory) << name;
      EXPECT_EQ(node->Find("n0005")->incarnation.starts, 7U) << name;
    }
  }
}

// "liar" is linked and says what it likes.
class HostileMembership : public ::testing::Test {
 protected:
  HostileMembership() : liar_(net_.network(), "liar") {
    net_.BootMany(8);
    EXPECT_TRUE(net_.AgreeWithin(absl::Seconds(5)));
    liar_.Dial("n0000:1");
    net_.RunFor(absl::Seconds(1));
    EXPECT_TRUE(liar_.linked());
    EXPECT_THAT(liar_.Heard<MembersDigestFrame>(), SizeIs(1));
    liar_.Forget();
    net_.ForgetChanges();
  }
  void Send(ports::Frame frame) {
    ASSERT_TRUE(liar_.Send(std::move(frame)).ok());
  }

  MemberNet net_;
  RawPeer liar_;
};

TEST_F(HostileMembership, OldGossipDoesNotBringTheDeadBack) {
  const MemberUpdate old = Update("n0004", {1, 0}, MemberState::kAlive);
  net_.Kill("n0004");
  ASSERT_TRUE(net_.GoneWithin("n0004", absl::Seconds(10)));
  for (int i = 0; i < 20; ++i) {
    Send(FrameOf(old));
    Send(FrameOf(Update("n0004", {1, 0}, MemberState::kSuspect, "liar")));
    net_.RunFor(absl::Seconds(1));
    EXPECT_TRUE(net_.Agree());
  }
}

TEST_F(HostileMembership, OneWhoLivesIsNotDeadByOneWord) {
  for (uint64_t i = 0; i < 10; ++i) {
    const MemberState state =
        i % 2 == 0 ? MemberState::kDead : MemberState::kSuspect;
    Send(FrameOf(Update("n0003", {1, i}, state, "liar")));
    net_.RunFor(absl::Seconds(15));
  }
  EXPECT_TRUE(net_.Agree());
  EXPECT_THAT(net_.Losses(), IsEmpty());
  EXPECT_GE(net_.node("n0000").Find("n0003")->incarnation,
            (MemberIncarnation{1, 10}));
}

// Its end of the link may be gone, and nobody would notice.
TEST_F(HostileMembership, ASilentLinkOfOneThatIsThoughtDeadIsClosed) {
  Send(FrameOf(Update("liar", {1, 0}, MemberState::kAlive)));
  RawPeer other(net_.network(), "other");
  other.Dial("n0000:1");
  net_.RunFor(absl::Milliseconds(100));
  for (const MemberState state : {MemberState::kSuspect, MemberState::kDead}) {
    ASSERT_TRUE(
        other.Send(FrameOf(Update("liar", {1, 0}, state, "other"))).ok());
  }
  net_.RunFor(absl::Milliseconds(100));
  ASSERT_NE(net_.node("n0000").Find("liar"), nullptr);
  ASSERT_EQ(net_.node("n0000").Find("liar")->state, MemberState::kDead);
  liar_.Forget();
  net_.RunFor(2 * HeartbeatOf(ports::Pace::kLan));
  EXPECT_TRUE(liar_.linked());
  EXPECT_TRUE(
      net_.Within(absl::Seconds(10), [this] { return !liar_.linked(); }));
  int64_t beats = 0;
  for (const ports::ProbeFrame& probe : liar_.Heard<ports::ProbeFrame>()) {
    if ((probe.number & Heartbeats::kNumberBit) != 0) ++beats;
  }
  EXPECT_EQ(beats, Heartbeats::kProbes);
}

TEST_F(HostileMembership, AQuarrelOfTwoOfOneNameIsBounded) {
  const int64_t before = net_.network().sent().frames;
  for (uint64_t i = 0; i < 2000; ++i) {
    MemberUpdate mine = Update("n0000", {1, 2 * i}, MemberState::kAlive);
    mine.facts->memory = 99;
    Send(FrameOf(mine));
    net_.RunFor(absl::Milliseconds(5));
  }
  // 2,000 from the liar, and what is sent in 10 s anyway.
  EXPECT_LT(net_.network().sent().frames - before, 2000 + 2000);
}

TEST_F(HostileMembership, ManyDigestsCostLittle) {
  MembersDigestFrame digest;
  digest.buckets.assign(ports::kDigestBuckets, 1);
  digest.wants_answer = true;
  for (int i = 0; i < 1000; ++i) {
    Send(digest);
    net_.RunFor(absl::Milliseconds(1));
  }
  EXPECT_LE(liar_.Heard<MembersFrame>().size(), 3U);
}

TEST_F(HostileMembership, ALargeTableComesInFramesWithinTheirBounds) {
  for (int i = 0; i < 600; ++i) {
    MemberUpdate update =
        Update(absl::StrCat("m", i), {1, 0}, MemberState::kAlive);
    update.facts->addresses = {std::string(200, 'a'), std::string(200, 'b')};
    Send(FrameOf(update));
  }
  net_.RunFor(absl::Milliseconds(100));
  RawPeer newcomer(net_.network(), "newcomer");
  newcomer.Dial("n0000:1");
  net_.RunFor(absl::Milliseconds(50));
  MembersDigestFrame digest;
  digest.buckets.assign(ports::kDigestBuckets, 0);
  ASSERT_TRUE(newcomer.Send(digest).ok());
  net_.RunFor(absl::Milliseconds(50));
  std::set<std::string> names;
  for (const MembersFrame& frame : newcomer.Heard<MembersFrame>()) {
    EXPECT_TRUE(ports::ValidateFrame(frame).ok());
    EXPECT_LE(ports::EncodedSize(frame), ports::kMaxControlFrameBytes);
    for (const MemberUpdate& m : frame.members) names.insert(m.node.name());
  }
  EXPECT_THAT(names, SizeIs(608));
}

TEST(Membership, WithNothingNewLittleIsSaid) {
  EXPECT_LE(IdleBytesPerSecond(64, absl::Minutes(2)), 2000);
}

TEST(Membership, SwitchedOffItSaysNothing) {
  MemberNet net;
  MemberNodeOptions off;
  off.enabled = false;
  net.Boot("off", off);
  net.Boot("on").Dial("off");
  net.RunFor(absl::Seconds(30));
  EXPECT_TRUE(net.node("on").links().IsUp(NodeId("off")));
  EXPECT_THAT(net.node("off").members(), IsEmpty());
  EXPECT_THAT(net.node("on").members(), SizeIs(1));
  EXPECT_EQ(net.network().delivered("off:1", "on:1").frames, 0);
}

}  // namespace
}  // namespace dfl::runtime
