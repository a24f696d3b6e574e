#include "daemon/runtime/membership/failure_detector.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/runtime/links/link_times.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_scheduler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

using ports::MemberState;
using ports::MemberUpdate;
using ports::ProbeAckFrame;
using ports::ProbeFrame;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const NodeId kSelf("self");

// Keeps what is sent.
class FakePaths final : public ProbePaths {
 public:
  struct Sent {
    std::string via;  // "": by the way to the target
    std::string target;
    uint64_t number = 0;
  };

  absl::Status SendVia(const NodeId& via, ProbeFrame frame) override {
    sent.push_back({via.name(), frame.route.target.name(), frame.number});
    return absl::OkStatus();
  }
  absl::Status Send(ProbeFrame frame) override {
    if (!far_ways) return absl::NotFoundError("no way");
    sent.push_back({"", frame.route.target.name(), frame.number});
    return absl::OkStatus();
  }
  bool Take(const NodeId& /*from*/, ProbeFrame& /*frame*/) override {
    return true;
  }
  bool Take(const NodeId& /*from*/, ProbeAckFrame& /*frame*/) override {
    return true;
  }
  std::vector<NodeId> Partners() const override {
    return {NodeId("m0"), NodeId("m4")};
  }
  absl::Duration AnswerDeadline(const NodeId& /*peer*/,
                                const DeadlineBounds& bounds) const override {
    return bounds.usual;
  }
  void NoteAnswer(const NodeId& /*peer*/, absl::Duration /*time*/) override {}
  void NoteNoAnswer(const NodeId& /*peer*/,
                    absl::Duration /*deadline*/) override {}

  bool far_ways = true;
  std::vector<Sent> sent;
};

// Four members are linked; m4 should be and is not. The judge writes down what
// it is told.
class Detector : public ::testing::Test, private FailureDetector::Judge {
 protected:
  Detector() {
    for (int i = 0; i < 5; ++i) {
      MemberUpdate update;
      update.node = NameOf(i);
      update.incarnation.starts = 1;
      update.facts = ports::MemberFacts();
      table_.Merge(update, loop_.Now());
      if (i < 4) detector_.OnPeerUp(NameOf(i));
    }
  }

  static NodeId NameOf(int i) { return NodeId(absl::StrCat("m", i)); }

  // `target` answers the probe of that number.
  bool Answer(const std::string& target, uint64_t number) {
    ProbeAckFrame ack;
    ack.route = {.origin = NodeId(target), .target = kSelf};
    ack.number = number;
    return detector_.OnAck(ack);
  }
  void Receipt(const std::string& of, uint64_t number) {
    ProbeAckFrame ack;
    ack.route = {.origin = NodeId(of), .target = kSelf};
    ack.number = number;
    ack.receipt = true;
    detector_.OnAck(ack);
  }
  // Runs for `duration`; all but `silent` answer at once, and give receipts.
  void RunAnswered(absl::Duration duration,
                   const std::set<std::string>& silent = {},
                   bool receipts = true) {
    const absl::Time end = loop_.Now() + duration;
    while (loop_.Now() < end) {
      scheduler_.RunFor(absl::Milliseconds(10));
      for (; read_ < paths_.sent.size(); ++read_) {
        const FakePaths::Sent sent = paths_.sent[read_];
        if (silent.count(sent.target) == 0) {
          Answer(sent.target, sent.number);
        } else if (sent.via != sent.target && receipts && !sent.via.empty()) {
          Receipt(sent.via, sent.number);
        }
      }
    }
  }
  // Says to the table and to the detector that `by` suspects `node`.
  void Suspect(const std::string& node, const std::string& by) {
    MemberUpdate update;
    update.node = NodeId(node);
    update.incarnation = table_.Find(NodeId(node))->incarnation;
    update.state = MemberState::kSuspect;
    update.by = NodeId(by);
    if (table_.Merge(update, loop_.Now()).effect == Merged::Effect::kChanged) {
      detector_.OnMember(NodeId(node));
    } else {
      detector_.Confirm(NodeId(node), NodeId(by));
    }
  }

  void OnNoAnswer(const NodeId& node) override {
    silent_.push_back(node.name());
    health_then_ = detector_.health().score();
  }
  void OnSuspicionOver(const NodeId& node) override {
    over_.push_back(node.name());
  }
  void OnPeriod() override { ++periods_; }

  simports::SimScheduler scheduler_;
  simports::SimLoop loop_{scheduler_};
  FakePaths paths_;
  size_t read_ = 0;
  MemberTable table_{kSelf, 1, {}, absl::UnixEpoch()};
  std::vector<std::string> silent_;
  int health_then_ = 0;  // when one was silent last
  std::vector<std::string> over_;
  int64_t periods_ = 0;
  FailureDetector detector_{kSelf,  1,      loop_,
                            paths_, table_, static_cast<Judge&>(*this)};
};

TEST_F(Detector, ProbesEachLinkInTurnsAndSometimesOneThatLacksIts) {
  RunAnswered(absl::Seconds(20));
  EXPECT_EQ(periods_, 20);
  std::vector<std::string> linked;
  int64_t far = 0;
  for (const auto& sent : paths_.sent) {
    if (sent.via.empty()) {
      EXPECT_EQ(sent.target, "m4");
      ++far;
    } else {
      EXPECT_EQ(sent.via, sent.target);
      linked.push_back(sent.target);
    }
  }
  EXPECT_EQ(far, 4);
  ASSERT_THAT(linked, SizeIs(20));
  for (size_t i = 0; i < linked.size(); i += 4) {
    EXPECT_THAT(
        std::set<std::string>(linked.begin() + i, linked.begin() + i + 4),
        SizeIs(4));
  }
  EXPECT_THAT(silent_, IsEmpty());
  EXPECT_EQ(detector_.health().score(), 0);
}

TEST_F(Detector, AsksThreeOthersBeforeItSaysThatOneIsSilent) {
  RunAnswered(absl::Seconds(10), {"m2"});
  ASSERT_THAT(silent_, Contains("m2"));
  EXPECT_THAT(silent_, Not(Contains("m0")));
  std::set<std::string> asked;
  uint64_t number = 0;
  for (const auto& sent : paths_.sent) {
    if (sent.target != "m2") continue;
    if (number == 0) number = sent.number;
    if (sent.number == number && sent.via != "m2") asked.insert(sent.via);
  }
  EXPECT_THAT(asked, ElementsAre("m0", "m1", "m3"));
  EXPECT_EQ(health_then_, 0);  // all gave receipts
}

TEST_F(Detector, MissingReceiptsMakeItDoubtItself) {
  RunAnswered(absl::Seconds(10), {"m2"}, /*receipts=*/false);
  EXPECT_THAT(silent_, Contains("m2"));
  EXPECT_GE(health_then_, 1);
  const int64_t before = periods_;
  for (int i = 0; i < 8; ++i) detector_.OnRefuted();
  EXPECT_EQ(detector_.health().score(), kWorstHealth);
  // Nine times as seldom.
  RunAnswered(absl::Seconds(9), {"m0", "m1", "m2", "m3", "m4"});
  EXPECT_LE(periods_ - before, 2);
}

TEST_F(Detector, AfterALostLinkOthersAreAskedAtOnce) {
  RunAnswered(absl::Milliseconds(10));
  paths_.sent.clear();
  read_ = 0;
  detector_.OnPeerDown(NodeId("m1"));
  ASSERT_THAT(paths_.sent, SizeIs(3));
  for (const auto& sent : paths_.sent) {
    EXPECT_EQ(sent.target, "m1");
    EXPECT_NE(sent.via, "m1");
  }
  scheduler_.RunFor(absl::Milliseconds(450));
  EXPECT_THAT(silent_, IsEmpty());
  scheduler_.RunFor(absl::Milliseconds(100));
  EXPECT_THAT(silent_, Contains("m1"));
  // One whose link comes back has spoken.
  silent_.clear();
  detector_.OnPeerDown(NodeId("m3"));
  detector_.OnPeerUp(NodeId("m3"));
  scheduler_.RunFor(absl::Milliseconds(600));
  EXPECT_THAT(silent_, Not(Contains("m3")));
}

TEST_F(Detector, OneWithoutAnyLinkIsFoundSilent) {
  RunAnswered(absl::Seconds(10), {"m4"});
  EXPECT_THAT(silent_, Contains("m4"));
}

TEST_F(Detector, WithoutAWayNobodyIsBlamed) {
  paths_.far_ways = false;
  RunAnswered(absl::Seconds(20), {"m4"});
  EXPECT_THAT(silent_, IsEmpty());
}

TEST_F(Detector, MakesSureOfALinkedOneThatOthersSuspect) {
  RunAnswered(absl::Milliseconds(10));
  paths_.sent.clear();
  read_ = 0;
  Suspect("m2", "m0");
  ASSERT_THAT(paths_.sent, SizeIs(1));
  EXPECT_EQ(paths_.sent[0].via, "m2");
}

TEST_F(Detector, SuspicionsEndByTimeOrByTheTable) {
  Suspect("m4", "m0");
  Suspect("m3", "m0");
  RunAnswered(absl::Seconds(2));
  EXPECT_THAT(over_, IsEmpty());
  MemberUpdate refuted = table_.StatementOn(NodeId("m3"));
  refuted.state = MemberState::kAlive;
  refuted.incarnation.refutations = 1;
  refuted.by = NodeId();
  table_.Merge(refuted, loop_.Now());
  detector_.OnMember(NodeId("m3"));
  RunAnswered(absl::Seconds(3));
  EXPECT_THAT(over_, ElementsAre("m4"));
}

TEST_F(Detector, WhoConfirmsMakesASuspicionShorter) {
  Suspect("m4", "m0");
  for (const char* by : {"m1", "m2", "m3"}) Suspect("m4", by);
  RunAnswered(absl::Milliseconds(1100));
  EXPECT_THAT(over_, IsEmpty());
  RunAnswered(absl::Milliseconds(150));
  EXPECT_THAT(over_, ElementsAre("m4"));
}

// Time in which it did not run is nobody's silence.
TEST_F(Detector, AfterAStandstillEachHasItsTimeAgain) {
  RunAnswered(absl::Seconds(5));
  Suspect("m4", "m0");
  scheduler_.RunFor(absl::Milliseconds(900));  // a probe is under way
  loop_.Freeze();
  scheduler_.RunFor(absl::Seconds(60));
  loop_.Thaw();
  scheduler_.RunFor(absl::Milliseconds(1));
  EXPECT_THAT(silent_, IsEmpty());
  EXPECT_THAT(over_, IsEmpty());
  EXPECT_GE(detector_.health().score(), 1);
  RunAnswered(absl::Seconds(1));
  EXPECT_THAT(silent_, IsEmpty());
  EXPECT_THAT(over_, IsEmpty());
}

TEST_F(Detector, AStoppedOneIsQuiet) {
  detector_.Stop();
  scheduler_.RunFor(absl::Seconds(10));
  detector_.OnPeerDown(NodeId("m1"));
  EXPECT_THAT(paths_.sent, IsEmpty());
  EXPECT_EQ(periods_, 0);
}

}  // namespace
}  // namespace dfl::runtime
