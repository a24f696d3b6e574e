// Who is connected, and when a peer is dialled again.
#include "daemon/runtime/links/links.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/raw_peer.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

class LinkEnd : public Links::Listener {
 public:
  // It listens at `address`; "": at its name.
  LinkEnd(simports::SimNetwork& network, const std::string& name,
          uint64_t incarnation = 1, const std::string& address = "")
      : log(network.scheduler()),
        loop(network.scheduler()),
        transport(network, loop, Options(name, incarnation, address)),
        links(LinksOptions{NodeId(name), incarnation}, loop, transport, log,
              *this),
        scheduler_(network.scheduler()) {}

  void OnPeerUp(const NodeId& peer, bool restarted) override {
    ups.emplace_back(peer.name(), restarted);
  }
  void OnPeerDown(const NodeId& peer, const absl::Status&) override {
    downs.push_back(peer.name());
  }
  void OnPeerFrame(const NodeId& peer, ports::Frame) override {
    heard.push_back(peer.name());
  }
  void OnPeerWritable(const NodeId&) override {}
  void OnAddressFailed(const std::string&) override {
    failed.push_back(scheduler_.Now());
  }

  EventLog log;
  simports::SimLoop loop;
  simports::SimTransport transport;
  Links links;
  std::vector<std::pair<std::string, bool>> ups;
  std::vector<std::string> downs;
  std::vector<std::string> heard;
  std::vector<absl::Time> failed;

 private:
  static simports::SimTransportOptions Options(const std::string& name,
                                               uint64_t incarnation,
                                               const std::string& address) {
    simports::SimTransportOptions options;
    options.node = NodeId(name);
    options.incarnation = incarnation;
    options.address = address.empty() ? name + ":1" : address;
    return options;
  }
  simports::SimScheduler& scheduler_;
};

class LinksTest : public testing::Test {
 protected:
  simports::SimScheduler scheduler_;
  simports::SimNetwork network_{scheduler_, 1, {}};
};

TEST_F(LinksTest, OfTwoSimultaneousDialsTheSmallerIdsStaysAtBothEnds) {
  for (int64_t lead_ms = -6; lead_ms <= 6; ++lead_ms) {
    SCOPED_TRACE(absl::StrCat("b dials ", lead_ms, " ms later"));
    LinkEnd a(network_, "a");
    LinkEnd b(network_, "b");
    LinkEnd& first = lead_ms >= 0 ? a : b;
    LinkEnd& second = lead_ms >= 0 ? b : a;
    const std::string to_first = lead_ms >= 0 ? "a:1" : "b:1";
    const std::string to_second = lead_ms >= 0 ? "b:1" : "a:1";
    ASSERT_TRUE(first.links.AddAddress(to_second).ok());
    scheduler_.RunFor(absl::Milliseconds(std::abs(lead_ms)));
    ASSERT_TRUE(second.links.AddAddress(to_first).ok());
    scheduler_.RunFor(absl::Seconds(5));
    EXPECT_EQ(a.transport.link_count(), 1);
    EXPECT_EQ(b.transport.link_count(), 1);
    ASSERT_TRUE(a.links.IsUp(NodeId("b")));
    ASSERT_TRUE(b.links.IsUp(NodeId("a")));
    EXPECT_NE(a.links.peers().at(NodeId("b")).dialled_by_us,
              b.links.peers().at(NodeId("a")).dialled_by_us);
    // When both were on the way, the smaller id's.
    if (std::abs(lead_ms) < 2) {
      EXPECT_TRUE(a.links.peers().at(NodeId("b")).dialled_by_us);
    }
    EXPECT_EQ(a.ups.size() - a.downs.size(), 1U);
    EXPECT_EQ(a.log.Count<ports::LinkUp>() - a.log.Count<ports::LinkDown>(), 1);
    ASSERT_TRUE(a.links.Send(NodeId("b"), ports::CancelAskFrame{1}).ok());
    ASSERT_TRUE(b.links.Send(NodeId("a"), ports::CancelAskFrame{1}).ok());
    scheduler_.RunFor(absl::Seconds(1));
    EXPECT_EQ(a.heard.size(), 1U);
    EXPECT_EQ(b.heard.size(), 1U);
    scheduler_.RunFor(absl::Seconds(30));
    EXPECT_LE(a.ups.size(), 2U);  // and nothing flaps
  }
}

TEST_F(LinksTest, TheBackOffGrowsAndIsBounded) {
  LinkEnd a(network_, "a");
  ASSERT_TRUE(a.links.AddAddress("nobody:1").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(a.links.AddAddress("nobody:1")));
  scheduler_.RunFor(absl::Seconds(300));
  ASSERT_GT(a.failed.size(), 30U);
  for (size_t i = 1; i < a.failed.size(); ++i) {
    const absl::Duration gap = a.failed[i] - a.failed[i - 1];
    absl::Duration want = absl::Seconds(10);
    if (i < 10) {
      want = std::min(want, absl::Milliseconds(200) * (1 << (i - 1)));
    }
    EXPECT_GE(gap, want / 2);
    EXPECT_LE(gap, want + absl::Milliseconds(5));
  }
  // One report for all these attempts.
  EXPECT_EQ(a.log.Count<ports::PeerUnreachable>(), 1);
  EXPECT_EQ(a.links.addresses().at("nobody:1").failures,
            static_cast<int64_t>(a.failed.size()));
}

TEST_F(LinksTest, EachChangeOfCauseIsReportedOnce) {
  LinkEnd a(network_, "a");
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  scheduler_.RunFor(absl::Seconds(60));
  EXPECT_EQ(a.log.Count<ports::PeerUnreachable>(), 1);  // refused
  network_.BlackHole("a:1", "b:1");
  scheduler_.RunFor(absl::Seconds(120));
  EXPECT_EQ(a.log.Count<ports::PeerUnreachable>(), 2);  // no answer
  network_.Heal("a:1", "b:1");
  LinkEnd b(network_, "b");
  scheduler_.RunFor(absl::Seconds(20));
  EXPECT_TRUE(a.links.IsUp(NodeId("b")));
  EXPECT_EQ(a.log.Count<ports::PeerUnreachable>(), 2);
  EXPECT_EQ(a.log.Count<ports::LinkUp>(), 1);
  network_.Cut("a:1", "b:1");
  scheduler_.RunFor(absl::Seconds(60));
  EXPECT_EQ(a.log.Count<ports::LinkDown>(), 1);
  EXPECT_EQ(a.log.Count<ports::PeerUnreachable>(), 3);  // refused, again
  EXPECT_FALSE(a.links.peers().at(NodeId("b")).last_error.empty());
}

TEST_F(LinksTest, ARemovedAddressIsClosedAndDialledNoMore) {
  LinkEnd a(network_, "a");
  LinkEnd b(network_, "b");
  EXPECT_TRUE(absl::IsNotFound(a.links.RemoveAddress("b:1")));
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  scheduler_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(a.links.IsUp(NodeId("b")));
  ASSERT_TRUE(a.links.RemoveAddress("b:1").ok());
  scheduler_.RunFor(absl::Seconds(60));
  EXPECT_FALSE(a.links.IsUp(NodeId("b")));
  EXPECT_FALSE(b.links.IsUp(NodeId("a")));
  EXPECT_EQ(a.ups.size(), 1U);
  EXPECT_TRUE(
      absl::IsNotFound(a.links.Send(NodeId("b"), ports::CancelAskFrame{1})));
  // Removed while the dial is under way.
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  ASSERT_TRUE(a.links.RemoveAddress("b:1").ok());
  scheduler_.RunFor(absl::Seconds(60));
  EXPECT_FALSE(a.links.IsUp(NodeId("b")));
  EXPECT_EQ(a.transport.link_count(), 0);
}

TEST_F(LinksTest, ALostLinkIsDialledAgain) {
  LinkEnd a(network_, "a");
  LinkEnd b(network_, "b");
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  for (size_t i = 1; i <= 10; ++i) {
    scheduler_.RunFor(absl::Seconds(5));
    ASSERT_TRUE(a.links.IsUp(NodeId("b")));
    EXPECT_EQ(a.ups.size(), i);
    EXPECT_FALSE(a.ups.back().second);
    network_.ResetLinks("a:1", "b:1");
  }
  scheduler_.RunFor(absl::Seconds(1));  // the first back-off each time
  EXPECT_TRUE(a.links.IsUp(NodeId("b")));
}

TEST_F(LinksTest, ANewIncarnationIsTold) {
  LinkEnd a(network_, "a");
  auto b = std::make_unique<LinkEnd>(network_, "b", 7);
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  scheduler_.RunFor(absl::Seconds(5));
  EXPECT_EQ(a.links.peers().at(NodeId("b")).incarnation, 7U);
  b.reset();
  b = std::make_unique<LinkEnd>(network_, "b", 8);
  scheduler_.RunFor(absl::Seconds(5));
  ASSERT_EQ(a.ups.size(), 2U);
  EXPECT_FALSE(a.ups[0].second);
  EXPECT_TRUE(a.ups[1].second);
  EXPECT_EQ(a.links.peers().at(NodeId("b")).incarnation, 8U);
}

// The peer's end of the first link is gone without ours having noticed.
TEST_F(LinksTest, OfTwoLinksThatOneEndDialledTheNewerStays) {
  LinkEnd a(network_, "a");
  RawPeer peer(network_, "p");
  peer.Dial("a:1");
  scheduler_.RunFor(absl::Seconds(1));
  const ports::LinkId old = a.links.peers().at(NodeId("p")).link;
  peer.Dial("a:1");
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_NE(a.links.peers().at(NodeId("p")).link, old);
  EXPECT_EQ(a.transport.link_count(), 1);
  EXPECT_EQ(a.ups.size(), 2U);
  EXPECT_EQ(a.downs.size(), 1U);
  EXPECT_EQ(a.log.Count<ports::LinkUp>(), 1);  // nothing has changed
  EXPECT_EQ(a.log.Count<ports::LinkDown>(), 0);
}

TEST_F(LinksTest, APeerThatHangsUpAtOnceIsNotDialledAtFullSpeed) {
  LinkEnd a(network_, "a");
  RawPeer peer(network_, "p");
  ASSERT_TRUE(a.links.AddAddress("p:1").ok());
  for (int i = 0; i < 60000; ++i) {
    scheduler_.RunFor(absl::Milliseconds(5));
    if (peer.linked()) peer.Hang();
  }
  EXPECT_LT(peer.links_up(), 60);  // of 300 s
  EXPECT_GT(peer.links_up(), 20);
}

// A daemon that says it is `name`, at an address of its own, and answers what
// it is asked while `answers`.
class Twin : public ports::Transport::Handler {
 public:
  Twin(simports::SimNetwork& network, const std::string& name,
       const std::string& address, uint64_t incarnation)
      : loop_(network.scheduler()),
        transport_(network, loop_, Options(name, address, incarnation)) {
    transport_.SetHandler(this);
  }
  void Dial(const std::string& address) { transport_.Dial(address); }
  bool linked() const { return link_ != 0; }

  void OnLinkUp(ports::LinkId link, const ports::PeerIdentity&,
                const std::string&) override {
    link_ = link;
  }
  void OnDialFailed(const std::string&, const absl::Status& status) override {
    failures.push_back(status);
  }
  void OnFrame(ports::LinkId link, ports::Frame frame) override {
    if (answers && std::holds_alternative<ports::ContractWant>(frame)) {
      (void)transport_.Send(link, ports::ContractPart{});
    }
  }
  void OnWritable(ports::LinkId) override {}
  void OnLinkDown(ports::LinkId link, const absl::Status&) override {
    if (link == link_) link_ = 0;
  }

  bool answers = true;
  std::vector<absl::Status> failures;

 private:
  static simports::SimTransportOptions Options(const std::string& name,
                                               const std::string& address,
                                               uint64_t incarnation) {
    simports::SimTransportOptions options;
    options.node = NodeId(name);
    options.incarnation = incarnation;
    options.address = address;
    return options;
  }

  simports::SimLoop loop_;
  simports::SimTransport transport_;
  ports::LinkId link_ = 0;
};

// Two daemons of one name, as from a cloned image, dial a third.
TEST_F(LinksTest, OfTwoDaemonsOfOneNameTheOneThatIsLinkedAndLivesStays) {
  LinkEnd a(network_, "a");
  Twin first(network_, "b", "b:1", 7);
  Twin clone(network_, "b", "b:2", 8);
  first.Dial("a:1");
  scheduler_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(first.linked());
  for (int i = 0; i < 20; ++i) {
    clone.Dial("a:1");
    scheduler_.RunFor(absl::Milliseconds(300));
    EXPECT_FALSE(clone.linked());
    EXPECT_TRUE(first.linked());
  }
  EXPECT_EQ(a.ups.size(), 1U);  // nothing flaps
  EXPECT_TRUE(a.downs.empty());
  const Links::Peer& peer = a.links.peers().at(NodeId("b"));
  EXPECT_EQ(peer.incarnation, 7U);
  // Both see it, and it is reported once.
  const std::string rival = a.links.rivals().Text(NodeId("b"));
  EXPECT_NE(rival.find("incarnation 0000000000000008 at b:2"),
            std::string::npos)
      << rival;
  EXPECT_EQ(a.log.Count<ports::SecurityNote>(), 1);
  ASSERT_EQ(clone.failures.size(), 20U);
  const std::string seen(clone.failures.back().message());
  EXPECT_NE(seen.find("incarnation 0000000000000007, is linked and answers: a "
                      "cloned image? give each its own name"),
            std::string::npos)
      << seen;
  // When the first has gone, its name is free.
  network_.ResetLinks("a:1", "b:1");
  scheduler_.RunFor(absl::Seconds(1));
  clone.Dial("a:1");
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_TRUE(clone.linked());
  EXPECT_EQ(a.links.rivals().Text(NodeId("b")), "");
}

// As after kill -9 behind a NAT: the old link hangs, and nobody is at its end.
TEST_F(LinksTest, ARestartedDaemonIsBackWithinSecondsThoughItsOldLinkHangs) {
  LinkEnd a(network_, "a");
  Twin before(network_, "b", "b:1", 7);
  before.answers = false;
  before.Dial("a:1");
  scheduler_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(before.linked());
  LinkEnd restarted(network_, "b", 8, "b:2");
  ASSERT_TRUE(restarted.links.AddAddress("a:1").ok());
  scheduler_.RunFor(absl::Seconds(3));
  EXPECT_TRUE(restarted.links.IsUp(NodeId("a")));
  EXPECT_EQ(a.links.peers().at(NodeId("b")).incarnation, 8U);
  ASSERT_EQ(a.ups.size(), 2U);
  EXPECT_TRUE(a.ups.back().second);  // a restart
  EXPECT_EQ(a.log.Count<ports::SecurityNote>(), 0);
  scheduler_.RunFor(absl::Seconds(30));
  EXPECT_EQ(a.ups.size(), 2U);
}

// The clone is what answers at an address that is dialled.
TEST_F(LinksTest, ACloneThatIsDialledIsNotTakenEither) {
  LinkEnd a(network_, "a");
  Twin first(network_, "b", "b:1", 7);
  Twin clone(network_, "b", "b:2", 8);
  first.Dial("a:1");
  scheduler_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(a.links.AddAddress("b:2").ok());
  scheduler_.RunFor(absl::Seconds(60));
  EXPECT_TRUE(first.linked());
  EXPECT_FALSE(clone.linked());
  EXPECT_EQ(a.ups.size(), 1U);
  EXPECT_NE(a.links.addresses().at("b:2").last_error.find("cloned image"),
            std::string::npos);
}

// What the network knows of names that are not linked here.
class FakeDistant : public DistantNodes {
 public:
  explicit FakeDistant(simports::SimLoop& loop) : loop_(loop) {}
  uint64_t IncarnationOf(const NodeId&) const override { return known; }
  void AskIncarnation(const NodeId&, absl::Duration within,
                      std::function<void(uint64_t)> done) override {
    ++asked;
    loop_.After(answer == 0 ? within : absl::Milliseconds(100),
                [this, done = std::move(done)] { done(answer); });
  }

  uint64_t known = 0;   // is a member
  uint64_t answer = 0;  // 0: nobody does
  int64_t asked = 0;

 private:
  simports::SimLoop& loop_;
};

TEST_F(LinksTest, ANameThatIsHeldElsewhereIsNotTakenWhileItsHolderAnswers) {
  LinkEnd a(network_, "a");
  FakeDistant distant(a.loop);
  a.links.SetDistant(&distant);
  distant.known = 7;
  distant.answer = 7;
  Twin clone(network_, "b", "b:2", 8);
  for (int i = 0; i < 10; ++i) {
    clone.Dial("a:1");
    scheduler_.RunFor(absl::Milliseconds(300));
    EXPECT_FALSE(clone.linked());
  }
  EXPECT_EQ(a.log.Count<ports::SecurityNote>(), 1);
  ASSERT_EQ(clone.failures.size(), 10U);
  EXPECT_NE(clone.failures.front().message().find(
                "is a member of the network, and is being asked"),
            std::string::npos)
      << clone.failures.front();
  EXPECT_TRUE(absl::IsFailedPrecondition(clone.failures.back()));
  EXPECT_NE(clone.failures.back().message().find(
                "incarnation 0000000000000007, is a member of the network and "
                "answers: a cloned image? give each its own name"),
            std::string::npos)
      << clone.failures.back();
  // Nor when it is what answers at an address that is dialled.
  ASSERT_TRUE(a.links.AddAddress("b:2").ok());
  scheduler_.RunFor(absl::Seconds(30));
  EXPECT_FALSE(clone.linked());
  EXPECT_TRUE(a.ups.empty());
  EXPECT_NE(a.links.addresses().at("b:2").last_error.find("cloned image"),
            std::string::npos);
  // The holder itself is let in at once.
  Twin holder(network_, "b", "b:3", 7);
  holder.Dial("a:1");
  scheduler_.RunFor(absl::Milliseconds(100));
  EXPECT_TRUE(holder.linked());
}

TEST_F(LinksTest, ARestartedMemberIsBackWithinTwoSeconds) {
  LinkEnd a(network_, "a");
  FakeDistant distant(a.loop);
  a.links.SetDistant(&distant);
  distant.known = 7;
  LinkEnd restarted(network_, "b", 8);
  ASSERT_TRUE(restarted.links.AddAddress("a:1").ok());
  scheduler_.RunFor(absl::Seconds(2));
  EXPECT_TRUE(restarted.links.IsUp(NodeId("a")));
  EXPECT_EQ(distant.asked, 1);
  EXPECT_EQ(a.log.Count<ports::SecurityNote>(), 0);
}

// It was let in elsewhere, and is who answers to its name.
TEST_F(LinksTest, ANewcomerThatAnswersToItsNameIsTheHolder) {
  LinkEnd a(network_, "a");
  FakeDistant distant(a.loop);
  a.links.SetDistant(&distant);
  distant.known = 7;
  distant.answer = 8;
  LinkEnd restarted(network_, "b", 8);
  ASSERT_TRUE(restarted.links.AddAddress("a:1").ok());
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_TRUE(restarted.links.IsUp(NodeId("a")));
  EXPECT_EQ(a.log.Count<ports::SecurityNote>(), 0);
  // A name of which nothing is known is nobody's.
  distant.known = 0;
  LinkEnd c(network_, "c");
  ASSERT_TRUE(c.links.AddAddress("a:1").ok());
  scheduler_.RunFor(absl::Milliseconds(100));
  EXPECT_TRUE(c.links.IsUp(NodeId("a")));
}

TEST_F(LinksTest, AnAddressIsDialledWhileSomebodyClaimsIt) {
  LinkEnd a(network_, "a");
  LinkEnd b(network_, "b");
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  a.links.Claim("membership", "b:1");
  scheduler_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(a.links.IsUp(NodeId("b")));
  ASSERT_TRUE(a.links.RemoveAddress("b:1").ok());
  EXPECT_TRUE(absl::IsNotFound(a.links.RemoveAddress("b:1")));
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_TRUE(a.links.IsUp(NodeId("b")));
  network_.ResetLinks("a:1", "b:1");
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_TRUE(a.links.IsUp(NodeId("b")));
  // Without a claim the link stays, and is not dialled again.
  a.links.Release("membership", "b:1");
  a.links.Release("membership", "b:1");
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_TRUE(a.links.IsUp(NodeId("b")));
  network_.ResetLinks("a:1", "b:1");
  scheduler_.RunFor(absl::Seconds(30));
  EXPECT_FALSE(a.links.IsUp(NodeId("b")));
  EXPECT_TRUE(a.links.addresses().empty());
}

TEST_F(LinksTest, AClaimMayWaitForTheOtherEndToDial) {
  LinkEnd a(network_, "a");
  LinkEnd b(network_, "b");
  b.links.Claim("membership", "a:1", NodeId("a"), absl::Seconds(1));
  scheduler_.RunFor(absl::Milliseconds(900));
  EXPECT_FALSE(b.links.IsUp(NodeId("a")));
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  scheduler_.RunFor(absl::Seconds(10));
  ASSERT_TRUE(b.links.IsUp(NodeId("a")));
  EXPECT_FALSE(b.links.peers().at(NodeId("a")).dialled_by_us);
  EXPECT_EQ(b.ups.size(), 1U);
  // A person does not wait.
  LinkEnd c(network_, "c");
  c.links.Claim("membership", "a:1", NodeId("a"), absl::Seconds(100));
  ASSERT_TRUE(c.links.AddAddress("a:1").ok());
  scheduler_.RunFor(absl::Milliseconds(100));
  EXPECT_TRUE(c.links.IsUp(NodeId("a")));
}

// Of two claims one says that the linked b answers there. The other wants
// whoever does, who is c.
TEST_F(LinksTest, WhoeverAnswersIsDialledThoughALinkedNodeIsThoughtToBeThere) {
  LinkEnd a(network_, "a");
  LinkEnd b(network_, "b");
  LinkEnd c(network_, "c");
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  scheduler_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(a.links.IsUp(NodeId("b")));
  a.links.Claim("membership", "c:1", NodeId("b"));
  scheduler_.RunFor(absl::Seconds(30));
  EXPECT_FALSE(a.links.IsUp(NodeId("c")));
  a.links.Claim("discovery", "c:1", NodeId(), absl::Seconds(1));
  scheduler_.RunFor(absl::Seconds(2));
  ASSERT_TRUE(a.links.IsUp(NodeId("c")));
  // Who answers there is linked now, and nobody is dialled again: not for a
  // claim that would be in more of a hurry either.
  a.links.Release("membership", "c:1");
  ASSERT_TRUE(a.links.AddAddress("c:1").ok());
  scheduler_.RunFor(absl::Seconds(60));
  EXPECT_EQ(c.ups.size(), 1U);
  EXPECT_TRUE(c.downs.empty());
  EXPECT_EQ(b.ups.size(), 1U);
  EXPECT_EQ(a.transport.link_count(), 2);
}

TEST_F(LinksTest, ALinkThatIsDroppedIsDialledAgainWhileItIsClaimed) {
  LinkEnd a(network_, "a");
  LinkEnd b(network_, "b");
  a.links.Drop(NodeId("b"), absl::UnavailableError("not there"));
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  scheduler_.RunFor(absl::Seconds(5));
  a.links.Drop(NodeId("b"), absl::UnavailableError("silent"));
  scheduler_.RunFor(absl::Milliseconds(50));
  EXPECT_EQ(a.downs.size(), 1U);
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_TRUE(a.links.IsUp(NodeId("b")));
}

TEST(LinkTimes, ADeadlineFollowsTheTimesBetweenItsBounds) {
  const DeadlineBounds bounds{.usual = absl::Seconds(2),
                              .floor = absl::Milliseconds(100),
                              .ceiling = absl::Seconds(10)};
  LinkTimes times;
  EXPECT_EQ(times.Deadline(bounds), absl::Seconds(2));
  times.Note(absl::Seconds(1));
  EXPECT_EQ(times.Deadline(bounds), absl::Seconds(3));  // 1 + 4 / 2
  for (int i = 0; i < 200; ++i) times.Note(absl::Milliseconds(400));
  EXPECT_NEAR(absl::ToDoubleSeconds(times.mean()), 0.4, 0.001);
  EXPECT_NEAR(absl::ToDoubleSeconds(times.Deadline(bounds)), 0.4, 0.01);
  for (int i = 0; i < 200; ++i) times.Note(absl::Microseconds(10));
  EXPECT_EQ(times.Deadline(bounds), bounds.floor);
  // Times that swing make it longer than their mean.
  for (int i = 0; i < 200; ++i) times.Note(absl::Seconds(i % 2));
  EXPECT_GT(times.Deadline(bounds), absl::Seconds(2));
  EXPECT_LT(times.Deadline(bounds), absl::Seconds(4));
  // And what did not come in time, too.
  LinkTimes missed;
  missed.NoteMissed(absl::Seconds(1));
  EXPECT_EQ(missed.Deadline(bounds), absl::Seconds(2));
  for (int i = 0; i < 200; ++i) missed.Note(absl::Milliseconds(50));
  missed.NoteMissed(absl::Seconds(1));
  EXPECT_GT(missed.Deadline(bounds), absl::Seconds(2));
  for (int i = 0; i < 200; ++i) missed.Note(absl::Seconds(100));
  EXPECT_EQ(missed.Deadline(bounds), bounds.ceiling);
}

TEST(LinkTimes, UntilOneHasComeEachThatWasMissedMakesTheDeadlineLonger) {
  const DeadlineBounds bounds{.usual = absl::Seconds(2),
                              .floor = absl::Milliseconds(100),
                              .ceiling = absl::Seconds(10)};
  LinkTimes times;
  for (const int64_t seconds : {4, 8, 10, 10}) {
    times.NoteMissed(times.Deadline(bounds));
    EXPECT_EQ(times.Deadline(bounds), absl::Seconds(seconds));
  }
  EXPECT_EQ(times.Expected(), absl::ZeroDuration());  // nothing is known
  // One that was given a short time makes it no shorter.
  times.NoteMissed(absl::Milliseconds(1));
  EXPECT_EQ(times.Deadline(bounds), bounds.ceiling);
  // The first that comes says how long they take.
  times.Note(absl::Seconds(1));
  EXPECT_EQ(times.Expected(), absl::Seconds(3));  // 1 + 4 / 2
  EXPECT_EQ(times.Deadline(bounds), absl::Seconds(3));
}

TEST_F(LinksTest, TheTimeOverALinkIsThatOfAnAnswerAndOfATransfer) {
  LinkEnd a(network_, "a");
  LinkEnd b(network_, "b");
  const NodeId peer("b");
  a.links.NoteTransfer(peer, absl::Seconds(1));  // it is not known yet
  EXPECT_EQ(a.links.TimeOver(peer), absl::ZeroDuration());
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  scheduler_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(a.links.IsUp(peer));
  EXPECT_EQ(a.links.TimeOver(peer), absl::ZeroDuration());
  a.links.NoteTransfer(peer, absl::Seconds(2));
  EXPECT_EQ(a.links.TimeOver(peer), absl::Seconds(6));  // 2 + 4 * 1
  a.links.NoteAnswer(peer, absl::Seconds(1));
  EXPECT_EQ(a.links.TimeOver(peer), absl::Seconds(8));  // and 2 * 1
  // Its own stalls and lost probes tell nothing of the link.
  a.links.NoteNoAnswer(peer, absl::Seconds(30));
  EXPECT_EQ(a.links.TimeOver(peer), absl::Seconds(8));
  // Of a peer that is not linked nothing is to be waited for.
  network_.Cut("a:1", "b:1");
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_EQ(a.links.TimeOver(peer), absl::ZeroDuration());
  network_.Heal("a:1", "b:1");
  scheduler_.RunFor(absl::Seconds(30));
  ASSERT_TRUE(a.links.IsUp(peer));
  EXPECT_EQ(a.links.TimeOver(peer), absl::Seconds(8));
}

TEST_F(LinksTest, APeersTimesOutliveItsLinks) {
  LinkEnd a(network_, "a");
  LinkEnd b(network_, "b");
  const DeadlineBounds bounds{.usual = absl::Seconds(2),
                              .floor = absl::Milliseconds(100),
                              .ceiling = absl::Seconds(10)};
  a.links.NoteAnswer(NodeId("b"), absl::Seconds(1));  // it is not known yet
  EXPECT_EQ(a.links.AnswerDeadline(NodeId("b"), bounds), bounds.usual);
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  scheduler_.RunFor(absl::Seconds(1));
  a.links.NoteAnswer(NodeId("b"), absl::Seconds(1));
  network_.ResetLinks("a:1", "b:1");
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_EQ(a.links.AnswerDeadline(NodeId("b"), bounds), absl::Seconds(3));
}

TEST_F(LinksTest, APeerWithOurOwnNameIsTurnedAway) {
  // Another daemon that was given this one's name by mistake dials us.
  LinkEnd a(network_, "a");
  a.links.OnLinkUp(1, ports::PeerIdentity{NodeId("a"), 5, ""}, "");
  EXPECT_FALSE(a.links.IsUp(NodeId("a")));
  EXPECT_TRUE(a.ups.empty());
}

// Offends once more than is borne.
void OffendTillShutOut(Links& links, const NodeId& peer) {
  for (int64_t i = 0; i < OffenceOptions().most; ++i) {
    links.Offend(peer, "a message of lies");
  }
}

TEST_F(LinksTest, APeerThatKeepsOffendingIsShutOutForADoublingTime) {
  LinkEnd a(network_, "a");
  LinkEnd b(network_, "b");
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  ASSERT_TRUE(b.links.AddAddress("a:1").ok());
  scheduler_.RunFor(absl::Seconds(5));
  const NodeId peer("b");
  for (const int64_t seconds : {10, 20, 40}) {
    SCOPED_TRACE(seconds);
    ASSERT_TRUE(a.links.IsUp(peer));
    OffendTillShutOut(a.links, peer);
    scheduler_.RunFor(absl::Seconds(1));
    EXPECT_FALSE(a.links.IsUp(peer));
    // Neither dialled nor let in.
    scheduler_.RunFor(absl::Seconds(seconds - 2));
    EXPECT_FALSE(a.links.IsUp(peer));
    scheduler_.RunFor(absl::Seconds(30));  // their own back-off
  }
  EXPECT_EQ(a.log.Count<ports::SecurityNote>(), 3);
  ASSERT_TRUE(a.links.IsUp(peer));
  // The others' links are not touched by any of it.
  LinkEnd c(network_, "c");
  ASSERT_TRUE(c.links.AddAddress("a:1").ok());
  OffendTillShutOut(a.links, peer);
  scheduler_.RunFor(absl::Seconds(5));
  EXPECT_TRUE(a.links.IsUp(NodeId("c")));
}

TEST_F(LinksTest, OffencesFarApartAreForgiven) {
  LinkEnd a(network_, "a");
  LinkEnd b(network_, "b");
  ASSERT_TRUE(a.links.AddAddress("b:1").ok());
  for (int64_t i = 0; i < 3 * OffenceOptions().most; ++i) {
    scheduler_.RunFor(absl::Seconds(5));
    a.links.Offend(NodeId("b"), "a message of lies");
  }
  EXPECT_TRUE(a.links.IsUp(NodeId("b")));
  EXPECT_EQ(a.log.Count<ports::SecurityNote>(), 0);
}

TEST(Offences, AQuietPeerBeginsAnew) {
  const OffenceOptions options;
  Offences offences(options);
  const NodeId peer("b");
  absl::Time now = absl::UnixEpoch();
  const auto shut_out = [&] {
    for (int64_t i = 1; i < options.most; ++i) {
      EXPECT_FALSE(offences.Count(peer, now));
    }
    EXPECT_TRUE(offences.Count(peer, now));
    return offences.Remaining(peer, now);
  };
  EXPECT_EQ(shut_out(), options.first);
  EXPECT_FALSE(offences.Count(peer, now));  // it is out already
  now += options.first;
  EXPECT_EQ(shut_out(), 2 * options.first);
  for (int i = 0; i < 20; ++i) {
    now += options.longest;
    shut_out();
  }
  EXPECT_EQ(offences.Remaining(peer, now), options.longest);
  now += 2 * options.longest + absl::Seconds(1);
  EXPECT_EQ(shut_out(), options.first);
  EXPECT_LE(offences.Remaining(NodeId("c"), now), absl::ZeroDuration());
}

}  // namespace
}  // namespace dfl::runtime
