// Whose model a node that starts takes, and for whom its first round waits. The
// neighbours are peers that say what the test tells them to.
#include "daemon/runtime/joining.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/plan/derived_plan.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/lone_node.h"
#include "tests/unit/runtime/raw_peer.h"

namespace dfl::runtime {
namespace {

using ports::Phase;

constexpr int64_t kN = 3000;
const NodeId kSelf("n0");
const NodeId kA("n1");
const NodeId kB("n2");

class JoiningTest : public testing::Test, public Joining::Listener {
 protected:
  JoiningTest() {
    Adopt("decefl");
    run_.SetContract(core::DataContract());
    for (RawPeer* peer : {&a_, &b_}) peer->Dial("n0:1");
    Pass(absl::Seconds(1));
  }

  void Adopt(const std::string& algorithm,
             const std::vector<NodeId>& members = {kSelf, kA, kB}) {
    core::RunPlan plan;
    plan.version = 1;
    plan.run_id = "run";
    for (const NodeId& name : members) {
      plan.members.push_back(core::MemberSpec{.node = name});
    }
    plan.model.kind = "linear";
    plan.model.classes = 0;
    plan.model.hidden.clear();
    plan.algorithm.name = algorithm;
    plan.topology.kind = "ring";
    plan.codec.format = core::MessageFormat{};
    auto derived = core::CheckAndDerive(plan, kSelf);
    ASSERT_TRUE(derived.ok()) << derived.status();
    run_.Adopt(derived->checked.plan, derived->node);
  }

  // Joining::Listener
  bool Starting() const override { return starting_; }
  bool MayReplaceModel() const override { return may_replace_; }
  int64_t OwnStep() const override { return own_step_; }
  void OnNobodyToJoin() override { ++nobody_; }
  void OnWaitEnds() override { ++wait_ends_; }

  void Pass(absl::Duration time) { scheduler_.RunFor(time); }
  // Long enough for messages, and for no other time that matters.
  void PassABit() { Pass(absl::Milliseconds(50)); }

  // `peer` says where it is.
  void Say(const NodeId& peer, int64_t step, Phase phase = Phase::kTraining,
           const std::string& run_id = "run") {
    ports::StateFrame state;
    state.run_id = run_id;
    state.contract = run_.contract_digest();
    state.algorithm = run_.plan().algorithm.name;
    state.phase = phase;
    state.step = step;
    peers_.OnState(peer, state);
  }
  void Begin() {
    joining_->Begin();
    joining_->Continue();
  }
  static std::vector<ports::AskFrame> Asks(const RawPeer& peer) {
    return peer.Heard<ports::AskFrame>();
  }

  simports::SimScheduler scheduler_;
  simports::SimNetwork network_{scheduler_, 1, {}};
  LoneNode self_{network_, "n0", kN};
  RawPeer a_{network_, "n1"};
  RawPeer b_{network_, "n2"};
  RunInForce run_{kSelf};
  PeerTable peers_{
      run_, [this](const NodeId& peer) { return self_.links.IsUp(peer); }};
  AskBook asks_;
  bool starting_ = true;
  bool may_replace_ = false;
  int64_t own_step_ = 0;
  int nobody_ = 0;
  int wait_ends_ = 0;
  std::unique_ptr<Joining> joining_ =
      std::make_unique<Joining>(JoiningOptions(), self_.loop, self_.links,
                                self_.transfers, asks_, peers_, run_, *this);
};

// --------------------------------------------------------------- searches ----

TEST_F(JoiningTest, NobodyIsAheadOnceAllAreHeardOf) {
  Say(kA, 0);
  Begin();
  EXPECT_EQ(nobody_, 0);  // n2 may be ahead
  Say(kB, 0);
  joining_->Continue();
  EXPECT_EQ(nobody_, 1);
  EXPECT_TRUE(joining_->searching());
  joining_->End();
  EXPECT_FALSE(joining_->searching());
}

TEST_F(JoiningTest, WhoIsNotHeardOfIsWaitedForForAWhile) {
  Begin();
  Pass(absl::Seconds(2) - absl::Milliseconds(1));
  EXPECT_EQ(nobody_, 0);
  Pass(absl::Milliseconds(2));
  EXPECT_EQ(nobody_, 1);
}

TEST_F(JoiningTest, TheFurthestIsAskedForItsState) {
  Say(kA, 5);
  Say(kB, 9);
  Begin();
  PassABit();
  EXPECT_TRUE(Asks(a_).empty());
  ASSERT_EQ(Asks(b_).size(), 1U);
  const ports::AskFrame ask = Asks(b_)[0];
  EXPECT_EQ(ask.purpose, ports::AskPurpose::kState);
  EXPECT_TRUE(asks_.IsOut(ask.ask, kB));
  EXPECT_TRUE(joining_->IsWanted(ask.ask));
  EXPECT_FALSE(joining_->IsWanted(ask.ask + 1));
  joining_->Continue();  // one is out
  PassABit();
  EXPECT_EQ(Asks(a_).size() + Asks(b_).size(), 1U);
  joining_->Taken();
  EXPECT_FALSE(joining_->searching());
  EXPECT_FALSE(joining_->IsWanted(ask.ask));
  Pass(absl::Seconds(60));
  EXPECT_TRUE(b_.Heard<ports::CancelAskFrame>().empty());
  EXPECT_EQ(nobody_, 0);
}

TEST_F(JoiningTest, WhoCannotGiveAModelIsNotAsked) {
  own_step_ = 4;
  Say(kA, 4);                               // not ahead
  Say(kB, 9, Phase::kTraining, "another");  // of another run
  Begin();
  PassABit();
  EXPECT_TRUE(Asks(a_).empty());
  EXPECT_TRUE(Asks(b_).empty());
  EXPECT_EQ(nobody_, 1);
}

TEST_F(JoiningTest, WhoIsNotLinkedIsNotAsked) {
  Say(kA, 0);
  Say(kB, 9);
  b_.Hang();
  PassABit();
  Begin();
  Pass(absl::Milliseconds(1900));
  EXPECT_EQ(nobody_, 0);  // and is not heard
  EXPECT_TRUE(Asks(a_).empty());
}

TEST_F(JoiningTest, OneThatGivesNothingIsAskedAgainAfterTheOthers) {
  Say(kA, 5);
  Say(kB, 9);
  Begin();
  PassABit();
  const uint64_t first = Asks(b_).at(0).ask;
  joining_->Failed(kB);
  EXPECT_FALSE(joining_->IsWanted(first));
  EXPECT_FALSE(asks_.IsOut(first, kB));
  PassABit();
  EXPECT_EQ(b_.Heard<ports::CancelAskFrame>().at(0).ask, first);
  ASSERT_EQ(Asks(a_).size(), 1U);
  joining_->Failed(kA);
  PassABit();
  EXPECT_EQ(Asks(b_).size(), 1U);  // not at once
  Pass(absl::Milliseconds(500));
  ASSERT_EQ(Asks(b_).size(), 2U);
  EXPECT_NE(Asks(b_)[1].ask, first);
}

TEST_F(JoiningTest, EachIsAskedAFewTimesAtMost) {
  Say(kA, 5);
  Say(kB, 9);
  Begin();
  std::string order;
  for (int asked = 0; asked < 6; ++asked) {
    Pass(absl::Seconds(1));
    ASSERT_EQ(Asks(a_).size() + Asks(b_).size(), asked + 1U);
    ASSERT_EQ(nobody_, 0);
    const bool at_b = joining_->IsWanted(Asks(b_).back().ask);
    order += at_b ? 'b' : 'a';
    joining_->Failed(at_b ? kB : kA);
  }
  EXPECT_EQ(order, "bababa");
  Pass(absl::Seconds(1));
  EXPECT_EQ(Asks(a_).size(), 3U);
  EXPECT_EQ(Asks(b_).size(), 3U);
  EXPECT_EQ(nobody_, 1);
}

TEST_F(JoiningTest, OneThatIsSilentIsGivenUp) {
  Say(kA, 5);
  Say(kB, 9);
  Begin();
  Pass(absl::Seconds(10) - absl::Milliseconds(100));
  EXPECT_TRUE(Asks(a_).empty());
  Pass(absl::Milliseconds(200));
  EXPECT_EQ(Asks(a_).size(), 1U);
  EXPECT_EQ(b_.Heard<ports::CancelAskFrame>().size(), 1U);
}

// A slow peer that is ahead: it gives 12 kB, 400 bytes a second.
class SlowJoiningTest : public JoiningTest {
 protected:
  SlowJoiningTest() {
    Adopt(run_.plan().algorithm.name, {kSelf, kA, kB, kSlow});
    simports::SimPath path;
    path.rate = 400;
    network_.SetPathBothWays("n0:1", "n3:1", path);
    EXPECT_TRUE(slow_.links.AddAddress("n0:1").ok());
    Pass(absl::Seconds(5));
    Say(kSlow, 9);
    Begin();
    const std::vector<uint64_t> out = asks_.OutTo(kSlow);
    EXPECT_EQ(out.size(), 1U);
    ask_ = out.at(0);
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->parameters.assign(kN, 1.0F);
    Outgoing outgoing;
    outgoing.to = kSelf;
    outgoing.ask = ask_;
    outgoing.sent_coordinates = kN;
    outgoing.snapshot = snapshot;
    outgoing.done = [](const absl::StatusOr<Receipt>&) {};
    slow_.transfers.Send(std::move(outgoing));
    Pass(absl::Seconds(25));
  }
  static TransfersOptions SmallChunks() {
    TransfersOptions options;
    options.chunk_bytes = 1000;
    return options;
  }

  const NodeId kSlow{"n3"};
  LoneNode slow_{network_, "n3", kN, SmallChunks()};
  uint64_t ask_ = 0;
};

TEST_F(SlowJoiningTest, OneWhoseModelMovesIsWaitedFor) {
  EXPECT_EQ(self_.models(), 0);
  EXPECT_TRUE(joining_->IsWanted(ask_));
  Pass(absl::Seconds(10));
  EXPECT_EQ(self_.models(), 1);
  EXPECT_TRUE(joining_->IsWanted(ask_));
}

TEST_F(SlowJoiningTest, AModelThatIsNotWantedAnyMoreIsNotTakenIn) {
  EXPECT_EQ(self_.transfers.inbound(), 1);
  joining_->End();
  EXPECT_EQ(self_.transfers.inbound(), 0);
}

TEST_F(JoiningTest, ASearchThatIsEndedWithdrawsItsAsk) {
  Say(kB, 9);
  Begin();
  PassABit();
  const uint64_t ask = Asks(b_).at(0).ask;
  joining_->End();
  EXPECT_FALSE(joining_->searching());
  EXPECT_FALSE(asks_.IsOut(ask, kB));
  PassABit();
  EXPECT_EQ(b_.Heard<ports::CancelAskFrame>().at(0).ask, ask);
  joining_->Failed(kB);  // has no consequence any more
  Pass(absl::Seconds(60));
  EXPECT_EQ(Asks(b_).size(), 1U);
  EXPECT_EQ(nobody_, 0);
}

TEST_F(JoiningTest, OneThatIsGoneDoesNothing) {
  Say(kA, 5);
  Begin();
  joining_->Failed(kA);  // posts, and may set a timer
  joining_.reset();
  Pass(absl::Seconds(60));
  EXPECT_EQ(Asks(a_).size(), 1U);
  EXPECT_EQ(nobody_, 0);
}

TEST_F(JoiningTest, OneThatIsGoneHasNoTimers) {
  Begin();  // waits for what it hears
  Say(kA, 0, Phase::kIdle);
  joining_->WaitForOthers(absl::Seconds(3));
  EXPECT_TRUE(joining_->AwaitsOthers());
  joining_.reset();
  Pass(absl::Seconds(60));
  EXPECT_EQ(nobody_, 0);
  EXPECT_EQ(wait_ends_, 0);
}

TEST_F(JoiningTest, ANodeThatTrainsAsksAtItsBoundaryOnly) {
  starting_ = false;
  own_step_ = 3;
  Say(kB, 9);
  Begin();
  PassABit();
  EXPECT_TRUE(Asks(b_).empty());
  EXPECT_TRUE(joining_->searching());
  may_replace_ = true;
  joining_->Continue();
  PassABit();
  EXPECT_EQ(Asks(b_).size(), 1U);
  // It asks each once, and then goes on with the model it has.
  joining_->Failed(kB);
  Pass(absl::Seconds(1));
  EXPECT_EQ(Asks(b_).size(), 1U);
  EXPECT_FALSE(joining_->searching());
  EXPECT_EQ(wait_ends_, 1);
  EXPECT_EQ(nobody_, 0);
}

// ---------------------------------------------------------- after a start ----

TEST_F(JoiningTest, OneThatIsHeardOfLaterAndIsAheadStillGivesItsModel) {
  Say(kA, 0);
  joining_->NoteStart(false);
  own_step_ = 3;
  joining_->Confirm(kA, 50);  // was heard of at the start
  EXPECT_FALSE(joining_->searching());
  Say(kB, 9);
  joining_->Confirm(kB, 9);
  EXPECT_TRUE(joining_->searching());
  EXPECT_TRUE(Asks(b_).empty());  // at the next boundary
}

TEST_F(JoiningTest, AStartIsConfirmedWhenAllWereHeardOf) {
  joining_->NoteStart(false);
  own_step_ = 9;
  Say(kA, 5);
  joining_->Confirm(kA, 5);
  EXPECT_FALSE(joining_->searching());  // is behind
  Say(kB, 9);
  joining_->Confirm(kB, 9);
  EXPECT_FALSE(joining_->searching());
  joining_->Confirm(kA, 90);
  EXPECT_FALSE(joining_->searching());  // all were heard of
}

TEST_F(JoiningTest, WhoIsOfAnotherRunConfirmsNothing) {
  joining_->NoteStart(false);
  Say(kB, 9, Phase::kTraining, "another");
  joining_->Confirm(kB, 9);
  EXPECT_FALSE(joining_->searching());
  Say(kB, 9);
  joining_->Confirm(kB, 9);
  EXPECT_TRUE(joining_->searching());
}

TEST_F(JoiningTest, ANodeThatJoinedNeedsOnlyOneThatIsTwiceAsFar) {
  for (const bool twice : {false, true}) {
    SCOPED_TRACE(twice);
    peers_.OnLink(kB);
    Say(kA, 10);
    joining_->ForgetStart();
    joining_->NoteStart(false);  // forgets of whom it has heard
    joining_->NoteStart(true);
    own_step_ = 10;
    Say(kB, twice ? 21 : 20);
    joining_->Confirm(kB, twice ? 21 : 20);
    EXPECT_EQ(joining_->searching(), twice);
  }
}

TEST_F(JoiningTest, AStartThatIsForgottenNeedsNoConfirmation) {
  joining_->NoteStart(false);
  joining_->ForgetStart();
  Say(kB, 9);
  joining_->Confirm(kB, 9);
  EXPECT_FALSE(joining_->searching());
}

// -------------------------------------------------------- the first round ----

TEST_F(JoiningTest, TheFirstRoundWaitsForThoseThatAreAboutToTrain) {
  Say(kA, 0, Phase::kIdle);
  Say(kB, 0, Phase::kTraining);
  EXPECT_FALSE(joining_->AwaitsOthers());  // nobody said so
  joining_->WaitForOthers(absl::Seconds(3));
  EXPECT_TRUE(joining_->waits_for_others());
  EXPECT_TRUE(joining_->AwaitsOthers());
  Pass(absl::Seconds(1));
  Say(kA, 0, Phase::kJoining);
  EXPECT_TRUE(joining_->AwaitsOthers());
  EXPECT_EQ(wait_ends_, 0);
  Say(kA, 0, Phase::kTraining);
  EXPECT_FALSE(joining_->AwaitsOthers());
  EXPECT_FALSE(joining_->waits_for_others());
  Pass(absl::Seconds(60));
  EXPECT_EQ(wait_ends_, 0);  // no timer is left
}

TEST_F(JoiningTest, ItWaitsForOneDeadlineAtMost) {
  Say(kA, 0, Phase::kIdle);
  joining_->WaitForOthers(absl::Seconds(3));
  EXPECT_TRUE(joining_->AwaitsOthers());
  Pass(absl::Seconds(3) - absl::Milliseconds(1));
  EXPECT_EQ(wait_ends_, 0);
  Pass(absl::Milliseconds(2));
  EXPECT_EQ(wait_ends_, 1);
  EXPECT_FALSE(joining_->AwaitsOthers());
}

TEST_F(JoiningTest, ItWaitsForNobodyElse) {
  const auto waits = [this] {
    joining_->WaitForOthers(absl::Seconds(3));
    return joining_->AwaitsOthers();
  };
  EXPECT_FALSE(waits());  // nobody is heard of
  Say(kA, 0, Phase::kIdle, "another");
  EXPECT_FALSE(waits());  // of another run
  Say(kA, 0, Phase::kIdle);
  EXPECT_TRUE(waits());
  own_step_ = 1;
  EXPECT_FALSE(joining_->AwaitsOthers());  // not the first round
  EXPECT_TRUE(waits());  // but of one that goes on from a checkpoint
  own_step_ = 0;
  a_.Hang();
  PassABit();
  EXPECT_FALSE(waits());
  Say(kB, 0, Phase::kIdle);
  EXPECT_TRUE(waits());
  joining_->WaitForNobody();
  EXPECT_FALSE(joining_->AwaitsOthers());
  Pass(absl::Seconds(60));
  EXPECT_EQ(wait_ends_, 0);  // no timer is left
  Adopt("decefl", {kSelf, kA, kB, NodeId("n3")});
  EXPECT_FALSE(waits());  // n2 is across the ring
  Adopt("draco");         // nodes are not in step
  peers_.CompareAll();
  Say(kB, 0, Phase::kIdle);
  EXPECT_FALSE(waits());
}

}  // namespace
}  // namespace dfl::runtime
