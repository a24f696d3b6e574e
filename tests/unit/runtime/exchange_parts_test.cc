// What a node exchanges, part by part: asks and answers, pushes, mass, and what
// may come in at all.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/runtime/ask_book.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/node_parts.h"

namespace dfl::runtime {
namespace {

using ports::Phase;
using ports::RefuseReason;
using testing::ElementsAre;
using testing::HasSubstr;

ports::TransferBegin Begin(ports::TransferKind kind, uint64_t id = 1) {
  ports::TransferBegin begin;
  begin.transfer = id;
  begin.kind = kind;
  begin.header = "no header";
  return begin;
}

// ------------------------------------------------------------------- asks ----

TEST(AskExchange, AnAskGoesOutWithTheStepAndARefusalMissesIt) {
  NodeParts p;
  p.Keep().JumpTo(6);
  p.SayState(p.b);
  p.exchange.asks().Do(core::Ask{3, {p.kB}});
  p.Pass();
  const auto asked = p.b.Heard<ports::AskFrame>();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].purpose, ports::AskPurpose::kMix);
  EXPECT_EQ(asked[0].step, 6);
  EXPECT_EQ(AskBook::AskOf(asked[0].ask), 3U);

  ASSERT_TRUE(
      p.b.Send(ports::RefuseFrame{asked[0].ask, RefuseReason::kBusy, ""}).ok());
  p.Pass();
  ASSERT_EQ(p.Events<core::AnswerMissing>().size(), 1U);
  EXPECT_EQ(p.Events<core::AnswerMissing>()[0]->ask, 3U);
  EXPECT_EQ(p.peers.missed(), 1);
}

TEST(AskExchange, WhoDoesNotAgreeIsNotAsked) {
  NodeParts p;
  p.Keep();  // b has said nothing
  p.exchange.asks().Do(core::Ask{1, {p.kB}});
  p.Pass();
  EXPECT_TRUE(p.b.Heard<ports::AskFrame>().empty());
  EXPECT_EQ(p.Events<core::AnswerMissing>().size(), 1U);
}

TEST(AskExchange, AnAskOfAPeerWaitsForSettledParameters) {
  NodeParts p;
  p.Keep().settled = false;
  p.SayState(p.b);
  ASSERT_TRUE(p.b.Send(ports::AskFrame{5, ports::AskPurpose::kMix, 0}).ok());
  p.Pass();
  EXPECT_TRUE(p.Events<core::AskArrived>().empty());
  p.keeper->settled = true;
  p.exchange.asks().Serve();
  ASSERT_EQ(p.Events<core::AskArrived>().size(), 1U);
  EXPECT_EQ(p.Events<core::AskArrived>()[0]->ask, 5U);
}

TEST(AskExchange, AnAskForAStateIsAnsweredWithoutTheAlgorithm) {
  NodeParts p;
  p.Keep();
  p.SayState(p.b);
  ASSERT_TRUE(p.b.Send(ports::AskFrame{5, ports::AskPurpose::kState, 0}).ok());
  p.Pass();
  EXPECT_TRUE(p.Events<core::AskArrived>().empty());
  ASSERT_EQ(p.b.Heard<ports::TransferBegin>().size(), 1U);
  EXPECT_EQ(p.b.Heard<ports::TransferBegin>()[0].ask, 5U);
}

TEST(AskExchange, WithoutAModelAnAskIsRefusedAndCounted) {
  NodeParts p;
  p.SayState(p.b);
  ASSERT_TRUE(p.b.Send(ports::AskFrame{5, ports::AskPurpose::kState, 0}).ok());
  p.Pass();
  const auto refused = p.b.Heard<ports::RefuseFrame>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].reason, RefuseReason::kNotReady);
  EXPECT_EQ(p.peers.all().at(p.kB).rejected, 1);
  EXPECT_EQ(p.log.Count<ports::MessageRejected>(), 0)
      << "that a node is not ready is no offence";
}

TEST(AskExchange, ALostLinkMissesItsAsks) {
  NodeParts p;
  p.Keep();
  p.SayState(p.b);
  p.exchange.asks().Do(core::Ask{1, {p.kB}});
  p.exchange.asks().OnPeerDown(p.kB);
  EXPECT_EQ(p.Events<core::AnswerMissing>().size(), 1U);
}

TEST(AskExchange, OfASilentPeerNoAnswerIsWaitedFor) {
  NodeParts p;
  p.Keep();
  p.SayState(p.b);
  p.exchange.asks().Do(core::Ask{1, {p.kB}});
  p.exchange.asks().OnSilent(p.kC);
  EXPECT_TRUE(p.Events<core::AnswerMissing>().empty());
  p.exchange.asks().OnSilent(p.kB);
  EXPECT_EQ(p.Events<core::AnswerMissing>().size(), 1U);
}

TEST(AskExchange, ADroppedAskIsNotAnswered) {
  NodeParts p;
  p.Keep().settled = false;
  p.SayState(p.b);
  ASSERT_TRUE(p.b.Send(ports::AskFrame{5, ports::AskPurpose::kMix, 0}).ok());
  ASSERT_TRUE(p.b.Send(ports::CancelAskFrame{5}).ok());
  p.Pass();
  p.keeper->settled = true;
  p.exchange.asks().Serve();
  EXPECT_TRUE(p.Events<core::AskArrived>().empty());
}

TEST(AskExchange, MissedNeighboursAreCountedAndReported) {
  NodeParts p;
  p.Keep();
  core::Missed missed;
  missed.peers = {p.kB, p.kC};
  missed.wanted = 2;
  p.exchange.asks().Do(missed);
  EXPECT_EQ(p.peers.missed(), 2);
  EXPECT_EQ(p.log.Count<ports::NeighboursMissed>(), 1);
}

// ----------------------------------------------------------------- pushes ----

TEST(PushExchange, PushesToThoseThatTakePart) {
  NodeParts p;
  p.Keep();
  p.SayState(p.b);
  p.SayState(p.c, Phase::kPaused);
  core::Push push;
  push.peers = {p.kB, p.kC};
  push.round = 4;
  push.scalars = {0.5};
  p.exchange.pushes().Do(push);
  p.Pass();
  const auto begun = p.b.Heard<ports::TransferBegin>();
  ASSERT_EQ(begun.size(), 1U);
  EXPECT_EQ(begun[0].kind, ports::TransferKind::kPush);
  EXPECT_EQ(begun[0].step, 4);
  EXPECT_THAT(begun[0].scalars, ElementsAre(0.5));
  EXPECT_TRUE(p.c.Heard<ports::TransferBegin>().empty());
}

TEST(PushExchange, ASkippedRoundIsToldAndHeard) {
  NodeParts p;
  p.Keep();
  p.SayState(p.b);
  core::Skip skip;
  skip.peers = {p.kB, p.kC};  // c takes no part
  skip.round = 3;
  p.exchange.pushes().Do(skip);
  ASSERT_TRUE(p.b.Send(ports::SkipFrame{8}).ok());
  ASSERT_TRUE(p.c.Send(ports::SkipFrame{8}).ok());
  p.Pass();
  EXPECT_EQ(p.b.Heard<ports::SkipFrame>().size(), 1U);
  EXPECT_TRUE(p.c.Heard<ports::SkipFrame>().empty());
  ASSERT_EQ(p.Events<core::Skipped>().size(), 1U);
  EXPECT_EQ(p.Events<core::Skipped>()[0]->round, 8);
}

TEST(PushExchange, TakesPushesOfNeighboursWhileItRunsOrIsPaused) {
  NodeParts p;
  p.Keep();
  EXPECT_EQ(p.exchange.pushes().Objection(p.kB)->reason,
            RefuseReason::kNotReady);
  for (const Phase phase :
       {Phase::kTraining, Phase::kDegraded, Phase::kPaused}) {
    p.own.phases.Set(phase, "");
    EXPECT_EQ(p.exchange.pushes().Objection(p.kB), std::nullopt);
  }
  EXPECT_EQ(p.exchange.pushes().Objection(NodeId("stranger"))->reason,
            RefuseReason::kNotANeighbour);
}

// ------------------------------------------------------------------- mass ----

// It is in a format that the receiver would refuse.
TEST(PushExchange, WhatWaitsWhenTheFormatChangesIsNotSent) {
  for (const bool rate : {false, true}) {
    SCOPED_TRACE(rate);
    NodeParts p;
    p.Keep();
    p.SayState(p.b);
    core::Push push;
    push.peers = {p.kB};
    for (push.round = 4; push.round < 6; ++push.round) {
      p.exchange.pushes().Do(push);
    }
    p.Pass();
    const auto begun = p.b.Heard<ports::TransferBegin>();
    ASSERT_EQ(begun.size(), 1U);
    core::RunPlan plan = p.own.run.plan();
    plan.version = 2;
    if (rate) {
      plan.codec.rate = 0.5;
    } else {
      plan.codec.format.values = core::ValueType::kFp16;
    }
    ASSERT_TRUE(p.plans.Set(NodeParts::Derive(std::move(plan)), nullptr).ok());
    ASSERT_EQ(p.own.run.plan().version, 2U);
    ASSERT_TRUE(p.b.Send(ports::TransferAck{begun[0].transfer,
                                            begun[0].body_bytes, true})
                    .ok());
    p.Pass();
    EXPECT_EQ(p.b.Heard<ports::TransferBegin>().size(), 1U);
    push.round = 6;
    p.exchange.pushes().Do(push);
    p.Pass();
    EXPECT_EQ(p.b.Heard<ports::TransferBegin>().size(), 2U);
  }
}

// Nobody waits for a model of the present round that was refused.
TEST(PushExchange, ARefusedPushEndsTheWaitForIt) {
  NodeParts p;
  p.Keep().JumpTo(6);
  p.SayState(p.b);
  p.presence.RefreshAll();
  ASSERT_EQ(p.Events<core::PeerUp>().size(), 1U);
  p.own.phases.Set(Phase::kFinished, "");  // so that it takes none
  ports::TransferBegin begin = Begin(ports::TransferKind::kPush);
  begin.step = 5;  // the next may still come
  ASSERT_TRUE(p.b.Send(begin).ok());
  p.Pass();
  EXPECT_TRUE(p.Events<core::PeerDown>().empty());
  begin.step = 6;
  ASSERT_TRUE(p.b.Send(begin).ok());
  p.Pass();
  EXPECT_EQ(p.Events<core::PeerDown>().size(), 1U);
  EXPECT_EQ(p.Events<core::PeerUp>().size(), 2U);
  begin.step = kLargestStep + 1;
  ASSERT_TRUE(p.b.Send(begin).ok());
  p.Pass();
  EXPECT_EQ(p.Events<core::PeerDown>().size(), 2U);
  EXPECT_EQ(p.b.Heard<ports::TransferCancel>().size(), 3U);
}

core::Give Parcel(const NodeId& to, uint64_t sequence) {
  core::Give give;
  give.to = to;
  give.sequence = sequence;
  give.mass = std::make_shared<FlatVector>(10, 1.0F);
  return give;
}

TEST(MassExchange, AParcelCarriesItsEpochAndSequence) {
  NodeParts p("k-gt");
  p.own.model.SetInitialised(true);
  p.lives.Restart(0);
  p.SayState(p.b, Phase::kTraining, 0, 1);
  p.exchange.mass().Do(Parcel(p.kB, 1));
  p.Pass();
  const auto begun = p.b.Heard<ports::TransferBegin>();
  ASSERT_EQ(begun.size(), 1U);
  EXPECT_EQ(begun[0].kind, ports::TransferKind::kMass);
  EXPECT_EQ(begun[0].tracker_epoch, 1U);
  EXPECT_EQ(begun[0].sequence, 1U);
}

TEST(MassExchange, AHigherEpochOfAnyPeerIsFollowed) {
  NodeParts p("k-gt");
  p.own.model.SetInitialised(true);
  p.lives.Restart(0);
  p.SayState(p.b);
  p.exchange.mass().Follow(p.kB, 5);
  EXPECT_EQ(p.exchange.mass().EpochToTell(), 5U);
  p.exchange.mass().Follow(p.kB, 3);
  EXPECT_EQ(p.exchange.mass().EpochToTell(), 5U);
  p.exchange.mass().Follow(p.kC, 9);
  EXPECT_EQ(p.exchange.mass().EpochToTell(), 5U) << "c is not in the run";
}

// k-gt on node a, which trains and has given b a parcel; b has started again.
class Restarted : public testing::Test {
 protected:
  Restarted() : p("k-gt") {
    p.own.model.SetInitialised(true);
    p.lives.Restart(0);
    p.own.phases.Set(Phase::kTraining, "");
    p.SayState(p.b, Phase::kTraining, 0, 1);
    mass().OnPeerUp(p.kB, true);
    EXPECT_EQ(mass().EpochToTell(), 1U) << "nothing was exchanged";
    mass().Do(Parcel(p.kB, 1));
    mass().OnPeerUp(p.kB, true);
    EXPECT_EQ(mass().EpochToTell(), 1U) << "what it has is not known";
  }
  MassExchange& mass() { return p.exchange.mass(); }
  void Say(Phase phase, uint64_t epoch, std::optional<core::EdgeBooks> books) {
    ports::StateFrame state = p.StateOf(phase, 0, epoch);
    state.books = books;
    ASSERT_TRUE(p.b.Send(state).ok());
    p.Pass();
    mass().OnState(p.kB, p.peers.all().at(p.kB).state);
  }

  NodeParts p;
};

TEST_F(Restarted, APartnerWithoutItsMemoryEndsTheEpoch) {
  Say(Phase::kJoining, 1, core::EdgeBooks{.delivered = 7});
  EXPECT_EQ(mass().EpochToTell(), 1U) << "it may still take another model";
  Say(Phase::kTraining, 1, core::EdgeBooks{.delivered = 7});
  EXPECT_EQ(mass().EpochToTell(), 2U);
  EXPECT_EQ(mass().parcels().out(), 0);
}

TEST_F(Restarted, APartnerWhoseBooksAgreeGoesOn) {
  ports::TransferBegin begin = Begin(ports::TransferKind::kMass);
  begin.tracker_epoch = 1;
  ASSERT_TRUE(p.b.Send(begin).ok());
  p.Pass();
  ASSERT_EQ(p.b.Heard<ports::TransferCancel>().size(), 1U) << "not yet";
  Say(Phase::kTraining, 1, core::EdgeBooks());
  EXPECT_EQ(mass().EpochToTell(), 1U);
  EXPECT_EQ(mass().parcels().out(), 1);
}

TEST_F(Restarted, APartnerThatSaysNothingHasLostItsMemory) {
  Say(Phase::kTraining, 1, std::nullopt);
  p.Pass(absl::Seconds(9));
  EXPECT_EQ(mass().EpochToTell(), 1U);
  p.Pass(absl::Seconds(2));
  EXPECT_EQ(mass().EpochToTell(), 2U);
}

// To read its data and its checkpoint may take a while.
TEST_F(Restarted, APartnerThatIsStillStartingHasAMinute) {
  Say(Phase::kIdle, 0, std::nullopt);
  p.Pass(absl::Seconds(50));
  EXPECT_EQ(mass().EpochToTell(), 1U);
  p.Pass(absl::Seconds(20));
  EXPECT_EQ(mass().EpochToTell(), 2U);
}

// What others say.
class FakeMembers : public MassMembers {
 public:
  std::optional<uint64_t> MemoryOf(const NodeId& node) const override {
    const auto it = memories.find(node);
    if (it == memories.end()) return std::nullopt;
    return it->second;
  }
  void Meet(std::set<NodeId> nodes) override { met = std::move(nodes); }

  std::map<NodeId, uint64_t> memories;
  std::set<NodeId> met;
};

// The same, and b, which was in its first life, is linked no more.
class RestartedElsewhere : public testing::Test {
 protected:
  RestartedElsewhere() : p("k-gt") {
    p.own.model.SetInitialised(true);
    p.lives.Restart(0);
    p.own.phases.Set(Phase::kTraining, "");
    p.SayState(p.b, Phase::kTraining, 0, 1);
    mass().SetMembers(members);
    mass().Do(Parcel(p.kB, 1));
    Hear(2);
    EXPECT_THAT(members.met, testing::IsEmpty()) << "its link would tell";
    p.b.Hang();
    p.Pass();
    EXPECT_FALSE(p.links.IsUp(p.kB));
  }
  MassExchange& mass() { return p.exchange.mass(); }
  void Hear(uint64_t memory) {
    members.memories[p.kB] = memory;
    mass().OnMember(p.kB);
  }
  void LoseContact() {
    members.memories.clear();
    mass().OnMember(p.kB);
  }

  FakeMembers members;  // outlives p
  NodeParts p;
};

TEST_F(RestartedElsewhere, APartnerThatCannotBeMetEndsTheEpoch) {
  Hear(1);
  EXPECT_THAT(members.met, testing::IsEmpty());
  Hear(2);
  EXPECT_THAT(members.met, ElementsAre(p.kB));
  p.Pass(absl::Seconds(30));
  Hear(3);  // it need not begin anew
  p.Pass(absl::Seconds(29));
  EXPECT_EQ(mass().EpochToTell(), 1U);
  p.Pass(absl::Seconds(2));
  EXPECT_EQ(mass().EpochToTell(), 2U);
  EXPECT_THAT(members.met, testing::IsEmpty());
  Hear(4);
  EXPECT_THAT(members.met, testing::IsEmpty()) << "it holds nothing any more";
}

// Another one has lied of it, or was late.
TEST_F(RestartedElsewhere, ARestartThatIsContradictedIsNone) {
  Hear(2);
  p.Pass(absl::Seconds(50));
  Hear(1);
  EXPECT_THAT(members.met, testing::IsEmpty());
  p.Pass(absl::Seconds(60));
  EXPECT_EQ(mass().EpochToTell(), 1U);
}

// It may come back with its books.
TEST_F(RestartedElsewhere, OneThatNobodyReachesIsWaitedFor) {
  Hear(2);
  LoseContact();
  EXPECT_THAT(members.met, ElementsAre(p.kB));
  p.Pass(absl::Minutes(10));
  EXPECT_EQ(mass().EpochToTell(), 1U);
  Hear(2);
  p.Pass(absl::Seconds(11));
  EXPECT_EQ(mass().EpochToTell(), 2U);
}

TEST_F(RestartedElsewhere, WithALinkInTimeTheBooksAreCompared) {
  Hear(2);
  p.Pass(absl::Seconds(50));
  p.b.Dial("a:1");
  p.Pass();
  mass().OnPeerUp(p.kB, /*restarted=*/true);
  EXPECT_THAT(members.met, ElementsAre(p.kB));
  p.Pass(absl::Seconds(20));
  EXPECT_EQ(mass().EpochToTell(), 1U) << "it has said nothing yet";
  ports::StateFrame state = p.StateOf(Phase::kTraining, 0, 1);
  state.books = core::EdgeBooks();
  ASSERT_TRUE(p.b.Send(state).ok());
  p.Pass();
  mass().OnState(p.kB, p.peers.all().at(p.kB).state);
  EXPECT_THAT(members.met, testing::IsEmpty());
  p.Pass(absl::Minutes(2));
  EXPECT_EQ(mass().EpochToTell(), 1U);
  EXPECT_EQ(mass().parcels().out(), 1);
}

TEST(MassExchange, MassOfAnOlderEpochIsRefusedAndItsSenderTold) {
  NodeParts p("k-gt");
  p.own.model.SetInitialised(true);
  p.lives.Restart(0);
  p.SayState(p.b);
  p.exchange.mass().Follow(p.kB, 4);
  p.Pass();  // all are told of it
  p.b.Forget();
  ports::TransferBegin begin = Begin(ports::TransferKind::kMass);
  begin.tracker_epoch = 2;
  ASSERT_TRUE(p.b.Send(begin).ok());
  p.Pass();
  const auto refused = p.b.Heard<ports::TransferCancel>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].reason, RefuseReason::kOlderEpoch);
  ASSERT_EQ(p.b.Heard<ports::StateFrame>().size(), 1U);
  EXPECT_EQ(p.b.Heard<ports::StateFrame>()[0].tracker_epoch, 4U);
}

TEST(MassExchange, WithoutAnAlgorithmThatTakesMassNoneIsTaken) {
  NodeParts p;
  p.Keep();
  p.SayState(p.b);
  ASSERT_TRUE(p.b.Send(Begin(ports::TransferKind::kMass)).ok());
  p.Pass();
  const auto refused = p.b.Heard<ports::TransferCancel>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_THAT(refused[0].text, HasSubstr("takes mass"));
}

// --------------------------------------------------------- what comes in ----

TEST(Exchange, RefusesWhatIsOfAnotherRunBeforeItLooksAtTheMessage) {
  NodeParts p;
  p.Keep();
  p.own.phases.Set(Phase::kTraining, "");
  ASSERT_TRUE(p.b.Send(Begin(ports::TransferKind::kPush)).ok());
  p.Pass();  // b has not said that it is in our run
  ASSERT_EQ(p.b.Heard<ports::TransferCancel>().size(), 1U);
  EXPECT_EQ(p.peers.all().at(p.kB).rejected, 1);
}

TEST(Exchange, RefusesStepsThatNoHonestNodeReaches) {
  NodeParts p;
  p.Keep();
  p.own.phases.Set(Phase::kTraining, "");
  p.SayState(p.b);
  ports::TransferBegin begin = Begin(ports::TransferKind::kPush);
  begin.step = kLargestStep + 1;
  ASSERT_TRUE(p.b.Send(begin).ok());
  p.Pass();
  const auto refused = p.b.Heard<ports::TransferCancel>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_THAT(refused[0].text, HasSubstr("is beyond"));
}

TEST(Exchange, AnAnswerThatNobodyAskedForIsNotTaken) {
  NodeParts p;
  p.Keep();
  p.SayState(p.b);
  ports::TransferBegin begin = Begin(ports::TransferKind::kAnswer);
  begin.ask = 77;
  ASSERT_TRUE(p.b.Send(begin).ok());
  p.Pass();
  const auto refused = p.b.Heard<ports::TransferCancel>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_THAT(refused[0].text, HasSubstr("not wanted any more"));
}

TEST(Exchange, ANewRunDropsWhatIsUnderWay) {
  NodeParts p("k-gt");
  p.own.model.SetInitialised(true);
  p.lives.Restart(0);
  p.SayState(p.b, Phase::kTraining, 0, 1);
  p.exchange.mass().Do(Parcel(p.kB, 1));
  EXPECT_EQ(p.exchange.transfers().outbound(), 1);
  p.exchange.BeginRun();
  EXPECT_EQ(p.exchange.transfers().outbound(), 0);
  EXPECT_EQ(p.exchange.mass().parcels().epoch(), 0U);
}

// A plan that changes the model, and another that changes it back: a neighbour
// that missed both must not take new parcels for repeats.
TEST(Exchange, ARunThatBeginsAgainDoesSoInAHigherEpoch) {
  NodeParts p("k-gt");
  p.own.model.SetInitialised(true);
  p.lives.Restart(0);
  const uint64_t before = p.exchange.mass().parcels().epoch();
  ASSERT_GT(before, 0U);
  p.exchange.BeginRun(/*again=*/true);
  EXPECT_EQ(p.exchange.mass().parcels().epoch(), before + 1);
}

}  // namespace
}  // namespace dfl::runtime
