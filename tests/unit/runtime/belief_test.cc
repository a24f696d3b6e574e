// What a neighbour says is no fact: rounds, epochs, and what was right when it
// began.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/codec/encoder.h"
#include "daemon/runtime/guards/epoch_guard.h"
#include "daemon/runtime/guards/jump_guard.h"
#include "daemon/simports/analytic_learner.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/lone_node.h"
#include "tests/unit/runtime/raw_peer.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

using ports::Phase;
using ports::TransferKind;

// n0 is a node; n1 says what a test wants; n2 is not there.
class Belief : public testing::Test {
 protected:
  explicit Belief(bool membership = false) {
    ClusterOptions options;
    options.membership = membership;
    options.seed = 62;
    options.nodes = 3;
    options.transfers.chunk_bytes = 3000;
    cluster_ = std::make_unique<SimCluster>(options);
    cluster_->Crash(1);
    cluster_->Crash(2);
  }

  core::RunPlan Plan(const std::string& algorithm, uint64_t version = 1) {
    core::RunPlan plan = cluster_->MakePlan(algorithm);
    plan.version = version;
    plan.deadline.exchange = absl::Milliseconds(100);
    return plan;
  }
  void Begin(const core::RunPlan& plan, Phase phase = Phase::kTraining) {
    cluster_->Run(plan);
    ASSERT_TRUE(cluster_->RunToStep(5));
    peer_ = std::make_unique<RawPeer>(cluster_->network(), "n1");
    peer_->Dial("n0:1");
    ASSERT_TRUE(cluster_->RunUntil([&] { return peer_->linked(); }));
    Pass();
    ASSERT_FALSE(peer_->Heard<ports::StateFrame>().empty());
    state_ = peer_->Heard<ports::StateFrame>().back();
    state_.step = 0;
    state_.phase = phase;
    Send(state_);
  }
  void Send(const ports::Frame& frame) {
    const absl::Status sent = peer_->Send(frame);
    EXPECT_TRUE(sent.ok()) << sent;
    Pass();
  }
  void Pass() { cluster_->RunFor(absl::Milliseconds(5)); }

  // A message of `n` values, announced; its body is returned.
  std::string Announce(TransferKind kind, uint64_t transfer, int64_t step,
                       int64_t n, int64_t buffers) {
    const std::vector<float> values(n, 0.5F);
    const std::vector<float> rest(buffers, 0.5F);
    codec::EncoderInput input;
    input.values = values;
    input.buffers = rest;
    auto encoder = codec::Encoder::Create(input);
    EXPECT_TRUE(encoder.ok());
    ports::TransferBegin begin;
    begin.transfer = transfer;
    begin.kind = kind;
    begin.step = step;
    begin.header = (*encoder)->header_bytes();
    begin.body_bytes = (*encoder)->header().body_bytes();
    if (kind == TransferKind::kMass) {
      begin.tracker_epoch = epoch() + epochs_ahead_;
      begin.sequence = 1;
    }
    Send(begin);
    return (*encoder)->Next(1 << 20);
  }
  void Push(uint64_t transfer, int64_t step) {
    const std::string body =
        Announce(TransferKind::kPush, transfer, step, 1000, 7);
    Send(ports::Chunk{transfer, 0, body});
  }

  Node& node() { return cluster_->node(0); }
  uint64_t epoch() { return node().parcels().epoch(); }

  std::unique_ptr<SimCluster> cluster_;
  std::unique_ptr<RawPeer> peer_;  // goes before the network
  ports::StateFrame state_;
  uint64_t epochs_ahead_ = 0;  // of the mass that is announced
};

// ----------------------------------------------------------------- rounds ----

TEST_F(Belief, OneThatClaimsLaterRoundsAgainAndAgainMovesNobody) {
  core::RunPlan plan = Plan("d-psgd");
  plan.stop.steps = 20'000;
  Begin(plan);
  const int64_t before = cluster_->step(0);
  for (int i = 0; i < 200; ++i) {
    state_.step = cluster_->step(0) + 1000;
    Send(state_);
  }
  EXPECT_LT(cluster_->step(0), before + 150);  // one every 10 ms
}

TEST_F(Belief, WithModelsItMovesANodeLittleAndNeverToTheEnd) {
  core::RunPlan plan = Plan("d-psgd");
  plan.stop.steps = 20'000;
  Begin(plan);
  const int64_t before = cluster_->step(0);
  for (uint64_t i = 1; i <= 200; ++i) {
    Push(i, cluster_->step(0) + 900);
  }
  // A second of rounds, 1,000, and 20 for each round that it took itself.
  EXPECT_GT(cluster_->step(0), before + 500);
  EXPECT_LT(cluster_->step(0), before + 1000 + 22 * 250);
  EXPECT_EQ(node().phase(), Phase::kTraining);

  const int64_t gradients = node().Status().gradients;
  plan.version = 2;
  plan.stop.steps = cluster_->step(0) + 300;
  ASSERT_TRUE(cluster_->SetPlan(0, plan).ok());
  Push(500, plan.stop.steps + 50);
  cluster_->RunFor(absl::Seconds(5));
  EXPECT_EQ(node().phase(), Phase::kFinished);
  EXPECT_GT(node().Status().gradients, gradients);
}

// One that has a single neighbour, and was frozen for ten seconds.
TEST_F(Belief, AfterATimeApartOneNeighbourIsEnough) {
  core::RunPlan plan = Plan("d-psgd");
  plan.stop.steps = 1'000'000;
  Begin(plan);
  Push(1, cluster_->step(0) + 1);
  cluster_->RunFor(absl::Seconds(1));
  Push(2, cluster_->step(0) + 1);
  cluster_->RunFor(absl::Seconds(10));
  const int64_t there = cluster_->step(0) + 6000;
  Push(3, there);
  cluster_->RunFor(absl::Milliseconds(100));
  EXPECT_GE(cluster_->step(0), there);
}

TEST_F(Belief, AStrangerIsNotAskedForAModelToStartFrom) {
  Begin(Plan("d-psgd"));  // n2 was never heard: a search may begin any time
  RawPeer stranger(cluster_->network(), "stranger");
  stranger.Dial("n0:1");
  ASSERT_TRUE(cluster_->RunUntil([&] { return stranger.linked(); }));
  state_.step = 1'000'000;
  ASSERT_TRUE(stranger.Send(state_).ok());
  cluster_->RunFor(absl::Seconds(2));
  EXPECT_TRUE(stranger.Heard<ports::AskFrame>().empty());
  EXPECT_LT(cluster_->step(0), 1000);
}

TEST(JumpGuardTest, TwoAreBelievedAndOneWithinBounds) {
  const absl::Time now = absl::UnixEpoch();
  JumpGuard guard;
  EXPECT_EQ(guard.Jump(10, 5000, 10, 0, now), 5000);
  EXPECT_EQ(guard.Jump(10, 5000, 10, 100, now), 100);
  EXPECT_EQ(guard.Jump(10, 10, 900, 901, now), 900);
  EXPECT_EQ(guard.Jump(900, 900, 1500, 0, now), 1010);  // what is left
  EXPECT_EQ(guard.Jump(1010, 1010, 1500, 0, now), 1010);
  guard.OnRound(now);
  EXPECT_EQ(guard.Jump(1011, 1011, 5000, 0, now), 1031);
  JumpGuard other;
  EXPECT_EQ(other.Jump(10, 10, 100, 100, now), 99);
  EXPECT_EQ(other.Jump(99, 99, 100, 100, now), 99);
}

TEST(JumpGuardTest, ATimeApartAllowsMoreForAWhile) {
  absl::Time now = absl::UnixEpoch();
  JumpGuard guard;
  const auto round = [&] {
    now += absl::Milliseconds(10);
    guard.OnRound(now);
    guard.OnHeard(now);
  };
  for (int i = 0; i < 20; ++i) round();
  EXPECT_EQ(guard.Jump(0, 0, 900'000, 0, now), 1000);
  now += absl::Seconds(60);
  guard.OnHeard(now);
  guard.OnHeard(now);  // what came at once afterwards changes nothing
  EXPECT_EQ(guard.Jump(1000, 1000, 50'000, 0, now), 50'000);
  EXPECT_EQ(guard.Jump(50'000, 50'000, 900'000, 0, now), 121'000);
  now += absl::Seconds(60);
  guard.OnHeard(now);
  now += absl::Seconds(31);
  EXPECT_EQ(guard.Jump(121'000, 121'000, 900'000, 0, now), 121'000);
}

// Rounds of a minute are no time apart.
TEST(JumpGuardTest, LongRoundsAllowNoMore) {
  absl::Time now = absl::UnixEpoch();
  JumpGuard guard;
  int64_t at = 0;
  for (int i = 0; i < 50; ++i) {
    now += absl::Minutes(1);
    guard.OnRound(now);
    guard.OnHeard(now);
    at = guard.Jump(at + 1, at + 1, 900'000, 0, now);
  }
  EXPECT_LE(at, 1000 + 50 * 21);
}

// ----------------------------------------------------------------- epochs ----

TEST_F(Belief, AnEpochThatNobodyCanHaveComeToIsNotEntered) {
  Begin(Plan("spod-gt"));
  const uint64_t before = epoch();
  state_.tracker_epoch = uint64_t{1} << 53;
  Send(state_);
  EXPECT_EQ(epoch(), before);
  EXPECT_EQ(node().Status().rejected["older-epoch"], 1);
  // The next one that is right is entered.
  state_.tracker_epoch = before + 1;
  Send(state_);
  EXPECT_EQ(epoch(), before + 1);
}

TEST_F(Belief, OneThatRaisesTheEpochAtWillIsSoonIgnored) {
  Begin(Plan("spod-gt"));
  const uint64_t before = epoch();
  for (int i = 0; i < 100; ++i) {
    state_.tracker_epoch = epoch() + 1;
    Send(state_);
    cluster_->RunFor(absl::Milliseconds(100));
  }
  EXPECT_LE(epoch(), before + 9);
  EXPECT_GT(node().Status().rejected["older-epoch"], 80);
  // Its mass of such an epoch waits: it is refused, not lost.
  peer_->Forget();
  epochs_ahead_ = 1;
  Announce(TransferKind::kMass, 7, cluster_->step(0), 1000, 0);
  EXPECT_EQ(peer_->Heard<ports::TransferCancel>().size(), 1U);
  cluster_->RunFor(absl::Seconds(61));
  state_.tracker_epoch = epoch() + 1;
  const uint64_t ignored = epoch();
  Send(state_);
  EXPECT_EQ(epoch(), ignored + 1);
}

// As a daemon in a crash loop does.
TEST_F(Belief, OneThatLosesItsMemoryAgainAndAgainIsSoonHeld) {
  Begin(Plan("spod-gt"));
  const uint64_t before = epoch();
  for (uint64_t i = 0; i < 50; ++i) {
    cluster_->RunFor(absl::Milliseconds(200));  // mass is given to it
    peer_.reset();
    peer_ = std::make_unique<RawPeer>(cluster_->network(), "n1", 2 + i);
    Pass();
    peer_->Dial("n0:1");
    ASSERT_TRUE(cluster_->RunUntil([&] { return peer_->linked(); }));
    state_.tracker_epoch = epoch();
    state_.books = core::EdgeBooks{.delivered = 5};  // it gave nothing
    Send(state_);
  }
  EXPECT_GE(epoch(), before + 8);
  EXPECT_LE(epoch(), before + 9);
  // It is not waited for, and its mass waits: it is refused, not lost.
  const int64_t step = cluster_->step(0);
  const uint64_t held = epoch();
  cluster_->RunFor(absl::Seconds(2));
  EXPECT_GT(cluster_->step(0), step + 100);
  peer_->Forget();
  Announce(TransferKind::kMass, 7, cluster_->step(0), 1000, 0);
  ASSERT_EQ(peer_->Heard<ports::TransferCancel>().size(), 1U);
  EXPECT_EQ(peer_->Heard<ports::TransferCancel>()[0].reason,
            ports::RefuseReason::kNotReady);
  EXPECT_EQ(node().Status().rejected["older-epoch"], 1);
  for (const PeerStatus& peer : node().Status().peers) {
    if (peer.node != NodeId("n1")) continue;
    EXPECT_EQ(peer.not_mixing.rfind("it loses its memory", 0), 0U)
        << peer.not_mixing;
  }
  // Half a minute later it takes part again, in a new epoch.
  cluster_->RunFor(absl::Seconds(31));
  EXPECT_EQ(epoch(), held + 1);
  state_.tracker_epoch = epoch();
  Send(state_);
  peer_->Forget();
  Announce(TransferKind::kMass, 8, cluster_->step(0), 1000, 0);
  EXPECT_TRUE(peer_->Heard<ports::TransferCancel>().empty());
  EXPECT_EQ(node().transfers().inbound(), 1);
}

// n1 has exchanged mass with n0, and is linked with n2 alone.
class BeliefOfOthers : public Belief {
 protected:
  BeliefOfOthers() : Belief(/*membership=*/true) {}

  void Part() {
    Begin(Plan("spod-gt"));
    cluster_->RunFor(absl::Milliseconds(200));
    ASSERT_EQ(node().parcels().partners().count(NodeId("n1")), 1U);
    peer_->Hang();
    other_ = std::make_unique<RawPeer>(cluster_->network(), "n2");
    other_->Dial("n0:1");
    ASSERT_TRUE(cluster_->RunUntil([&] { return other_->linked(); }));
    Tell(1);
  }
  // n2 passes on what n1 says of itself, whatever was said before.
  void Tell(uint64_t memory, std::vector<std::string> addresses = {}) {
    ports::MemberUpdate update;
    update.node = NodeId("n1");
    update.incarnation = {1, ++told_};
    update.facts.emplace();
    update.facts->memory = memory;
    update.facts->addresses = std::move(addresses);
    ASSERT_TRUE(other_->Send(ports::MembersFrame{{update}}).ok());
    Pass();
  }
  // Whether the epoch rises within `limit`, in which n1 answers n2.
  bool Rises(absl::Duration limit, uint64_t memory) {
    const uint64_t before = epoch();
    const absl::Time end = cluster_->Now() + limit;
    while (cluster_->Now() < end && epoch() == before) {
      Tell(memory);
      cluster_->RunFor(absl::Milliseconds(95));
    }
    return epoch() != before;
  }

  std::unique_ptr<RawPeer> other_;
  uint64_t told_ = 0;
};

TEST_F(BeliefOfOthers, APartnerThatStartsAgainElsewhereEndsTheEpoch) {
  Part();
  EXPECT_FALSE(Rises(absl::Seconds(90), 1));
  EXPECT_FALSE(Rises(absl::Seconds(50), 7));
  EXPECT_TRUE(Rises(absl::Seconds(60), 7));
  EXPECT_FALSE(Rises(absl::Seconds(75), 8)) << "it holds nothing any more";
}

TEST_F(BeliefOfOthers, LiesThatAreContradictedInTimeMoveNobody) {
  Part();
  for (uint64_t lie = 2; lie < 6; ++lie) {
    EXPECT_FALSE(Rises(absl::Seconds(40), lie));
    Tell(1);
  }
}

// It is dialled for that.
TEST_F(BeliefOfOthers, APartnerThatCanBeMetIsAskedForItsBooks) {
  Part();
  const uint64_t before = epoch();
  peer_ = nullptr;
  peer_ = std::make_unique<RawPeer>(cluster_->network(), "n1", 7);
  Tell(7, {"n1:1"});
  ASSERT_TRUE(
      cluster_->RunUntil([&] { return peer_->linked(); }, absl::Seconds(5)));
  Pass();
  // It has a checkpoint, and nothing that n0 gave it is known to be taken.
  state_.tracker_epoch = epoch();
  state_.books = core::EdgeBooks();
  peer_->Forget();
  Send(state_);
  EXPECT_EQ(epoch(), before);
  cluster_->RunFor(absl::Milliseconds(1500));
  const auto begun = peer_->Heard<ports::TransferBegin>();
  EXPECT_TRUE(std::any_of(begun.begin(), begun.end(), [&](const auto& b) {
    return b.kind == TransferKind::kMass && b.tracker_epoch == before;
  })) << "it goes on where it was";
  EXPECT_EQ(epoch(), before);
}

TEST(EpochGuardTest, FollowsEightTimesAndThenOnceInHalfAMinute) {
  EpochGuard guard;
  const NodeId peer("a");
  absl::Time now = absl::UnixEpoch();
  using Verdict = EpochGuard::Verdict;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(guard.Raise(peer, now), Verdict::kFollow) << i;
  }
  EXPECT_EQ(guard.Raise(peer, now), Verdict::kTooOften);
  EXPECT_EQ(guard.Raise(peer, now), Verdict::kStillTooOften);
  EXPECT_EQ(guard.Raise(NodeId("b"), now), Verdict::kFollow);
  now += absl::Seconds(31);
  EXPECT_EQ(guard.Raise(peer, now), Verdict::kFollow);
  EXPECT_EQ(guard.Raise(peer, now), Verdict::kTooOften);
  now += absl::Hours(1);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(guard.Raise(peer, now), Verdict::kFollow) << i;
  }
  EXPECT_EQ(guard.Raise(peer, now), Verdict::kTooOften);
}

// ----------------------------------------- what was right when it was begun --

// An update of draco is no model of d-psgd.
TEST_F(Belief, APushThatOutlivesItsAlgorithmIsNotMixed) {
  Begin(Plan("draco"));
  const std::string body = Announce(TransferKind::kPush, 1, 3, 1000, 7);
  Send(ports::Chunk{1, 0, body.substr(0, 2000)});
  ASSERT_EQ(node().transfers().inbound(), 1);
  ASSERT_TRUE(cluster_->SetPlan(0, Plan("d-psgd", 2)).ok());
  cluster_->RunFor(absl::Milliseconds(50));
  ASSERT_EQ(node().Status().algorithm, "d-psgd");
  state_.algorithm = "d-psgd";
  Send(state_);
  const std::vector<float> model = cluster_->parameters(0);
  const int64_t received = node().models_received();
  peer_->Forget();
  Send(ports::Chunk{1, 2000, body.substr(2000)});
  ASSERT_EQ(peer_->Heard<ports::TransferCancel>().size(), 1U);
  EXPECT_EQ(peer_->Heard<ports::TransferCancel>()[0].reason,
            ports::RefuseReason::kNotReady);
  cluster_->RunFor(absl::Seconds(1));
  EXPECT_EQ(node().models_received(), received);
  EXPECT_EQ(cluster_->parameters(0), model);
}

// A parcel of beer has 2 n entries, one of spod-gt n. Nothing was exchanged, so
// the epoch stays.
TEST_F(Belief, MassThatOutlivesItsAlgorithmIsNotTaken) {
  Begin(Plan("spod-gt"), Phase::kPaused);
  const uint64_t before = epoch();
  const std::string body = Announce(TransferKind::kMass, 1, 3, 1000, 0);
  Send(ports::Chunk{1, 0, body.substr(0, 2000)});
  ASSERT_EQ(node().transfers().inbound(), 1);
  ASSERT_TRUE(cluster_->SetPlan(0, Plan("beer", 2)).ok());
  cluster_->RunFor(absl::Milliseconds(50));
  ASSERT_EQ(node().Status().algorithm, "beer");
  ASSERT_EQ(epoch(), before);
  state_.algorithm = "beer";
  Send(state_);
  peer_->Forget();
  Send(ports::Chunk{1, 2000, body.substr(2000)});
  // It is told, so that it may send again what it has to give.
  EXPECT_EQ(peer_->Heard<ports::TransferCancel>().size(), 1U);
  const int64_t step = cluster_->step(0);
  cluster_->RunFor(absl::Seconds(1));
  EXPECT_GT(cluster_->step(0), step + 5);
}

// What was given in an epoch that is over is not acknowledged as taken.
TEST_F(Belief, MassThatOutlivesItsEpochIsRefused) {
  Begin(Plan("spod-gt"));
  const std::string body =
      Announce(TransferKind::kMass, 1, cluster_->step(0), 1000, 0);
  Send(ports::Chunk{1, 0, body.substr(0, 2000)});
  ASSERT_EQ(node().transfers().inbound(), 1);
  state_.tracker_epoch = epoch() + 1;
  Send(state_);
  ASSERT_EQ(epoch(), state_.tracker_epoch);
  peer_->Forget();
  Send(ports::Chunk{1, 2000, body.substr(2000)});
  EXPECT_TRUE(peer_->Heard<ports::TransferAck>().empty());
  ASSERT_EQ(peer_->Heard<ports::TransferCancel>().size(), 1U);
  EXPECT_EQ(peer_->Heard<ports::TransferCancel>()[0].reason,
            ports::RefuseReason::kOlderEpoch);
}

// ---------------------------------------------------------------- formats --

TEST_F(Belief, AModelInAnotherFormThanThePlansIsRefusedBeforeItCostsAnything) {
  core::RunPlan plan = Plan("d-psgd");
  plan.codec.format.coordinates = core::Coordinates::kRandom;
  plan.codec.rate = 0.1;
  Begin(plan);
  const auto announce = [&](uint64_t id, int64_t s, core::ValueType type) {
    const std::vector<float> values(1000, 0.5F);
    const std::vector<float> buffers(7, 0.5F);
    codec::EncoderInput input;
    input.format = {core::Coordinates::kRandom, type};
    input.sent = s;
    input.seed = 5;
    input.values = values;
    input.buffers = buffers;
    auto encoder = codec::Encoder::Create(input);
    EXPECT_TRUE(encoder.ok()) << encoder.status();
    ports::TransferBegin begin;
    begin.transfer = id;
    begin.kind = TransferKind::kPush;
    begin.step = cluster_->step(0);
    begin.header = (*encoder)->header_bytes();
    begin.body_bytes = (*encoder)->header().body_bytes();
    peer_->Forget();
    Send(begin);
    const auto refused = peer_->Heard<ports::TransferCancel>();
    return refused.empty() ? std::string() : refused[0].text;
  };
  EXPECT_EQ(announce(1, 1, core::ValueType::kFp32),
            "the model is sent with 1 of 1000 coordinates; the plan says 100");
  EXPECT_EQ(announce(2, 100, core::ValueType::kFp16),
            "the model is sent as random fp16; the plan says random fp32");
  EXPECT_EQ(announce(3, 100, core::ValueType::kFp32), "");
  EXPECT_EQ(node().Status().rejected["unknown-codec"], 2);
  // It may have a newer plan already.
  state_.plan_version = 2;
  Send(state_);
  EXPECT_EQ(announce(4, 50, core::ValueType::kFp16), "");
}

// -------------------------------------------------------------- strangers --

TEST_F(Belief, AStrangerIsGivenNoModelAndLeavesNothing) {
  Begin(Plan("pame"));
  for (int i = 0; i < 50; ++i) {
    RawPeer stranger(cluster_->network(), absl::StrCat("stranger-", i));
    stranger.Dial("n0:1");
    cluster_->RunFor(absl::Milliseconds(10));
    ASSERT_TRUE(stranger.Send(state_).ok());
    for (const auto purpose :
         {ports::AskPurpose::kState, ports::AskPurpose::kMix}) {
      ASSERT_TRUE(stranger.Send(ports::AskFrame{1, purpose, 0}).ok());
    }
    cluster_->RunFor(absl::Milliseconds(10));
    const auto refused = stranger.Heard<ports::RefuseFrame>();
    ASSERT_EQ(refused.size(), 2U);
    EXPECT_EQ(refused[0].reason, ports::RefuseReason::kNotANeighbour);
    EXPECT_TRUE(stranger.Heard<ports::TransferBegin>().empty());
    stranger.Hang();
    cluster_->RunFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(node().transfers().outbound(), 0);
}

TEST_F(Belief, AnAnswerThatNobodyAcknowledgesEnds) {
  Begin(Plan("pame"));
  Send(ports::AskFrame{1, ports::AskPurpose::kState, 0});
  EXPECT_EQ(node().transfers().outbound(), 1);
  for (int i = 0; i < 7; ++i) {  // its link is alive
    cluster_->RunFor(absl::Minutes(1));
    Send(state_);
  }
  EXPECT_EQ(node().transfers().outbound(), 0);
}

// To acknowledge the same bytes again keeps nothing alive.
TEST_F(Belief, AnAnswerOfWhichNothingMoreIsAcknowledgedEnds) {
  Begin(Plan("pame"));
  Send(ports::AskFrame{1, ports::AskPurpose::kState, 0});
  const auto begun = peer_->Heard<ports::TransferBegin>();
  ASSERT_FALSE(begun.empty());
  for (int i = 0; i < 7; ++i) {
    Send(ports::TransferAck{begun.back().transfer, 0, false});
    cluster_->RunFor(absl::Minutes(1));
  }
  EXPECT_EQ(node().transfers().outbound(), 0);
}

TEST_F(Belief, AModelThatStopsComingEnds) {
  Begin(Plan("d-psgd"));
  const std::string body =
      Announce(TransferKind::kPush, 1, cluster_->step(0), 1000, 7);
  for (int i = 0; i < 8; ++i) {  // 24 minutes, and bytes come now and then
    Send(ports::Chunk{1, 100 * i, body.substr(100 * i, 100)});
    cluster_->RunFor(absl::Minutes(3));
    EXPECT_EQ(node().transfers().inbound(), 1);
  }
  peer_->Forget();
  for (int i = 0; i < 3; ++i) {
    Send(state_);
    Send(ports::Chunk{1, 0, body.substr(0, 100)});  // nothing more
    cluster_->RunFor(absl::Minutes(1));
  }
  EXPECT_EQ(node().transfers().inbound(), 0);
  int64_t refused = 0;
  for (const auto& cancel : peer_->Heard<ports::TransferCancel>()) {
    if (!cancel.by_sender) ++refused;  // the others end the node's own pushes
  }
  EXPECT_EQ(refused, 1);
}

// What waits in a queue was not sent, and is lost with the link.
TEST(BytesSent, AreThoseThatLeft) {
  ClusterOptions options;
  options.nodes = 2;
  options.network.path.rate = 10e3;
  options.network.keepalive_timeout = absl::Seconds(3);
  SimCluster c(options);
  c.Run(c.MakePlan("d-psgd"));
  ASSERT_TRUE(c.RunToStep(3));
  c.network().BlackHole(c.address(0), c.address(1));
  c.RunFor(absl::Seconds(2));
  c.RunFor(absl::Seconds(20));
  int64_t sent = 0;
  for (const int64_t i : {0, 1}) sent += c.node(i).Status().bytes_sent;
  // The network counts what it carries, and with it what it swallowed.
  EXPECT_LE(sent, c.network().sent().bytes);
  EXPECT_GT(sent, c.network().sent().bytes / 2);
}

TEST(ManyNames, OnlyTheLastAreRemembered) {
  simports::SimScheduler scheduler;
  simports::SimNetwork network(scheduler, 1, {});
  LoneNode self(network, "self", 10);
  for (size_t i = 0; i < kMostPeersKept + 100; ++i) {
    RawPeer peer(network, absl::StrCat("peer-", i));
    peer.Dial("self:1");
    scheduler.RunFor(absl::Milliseconds(10));
    EXPECT_TRUE(peer.linked());
    peer.Hang();
    scheduler.RunFor(absl::Milliseconds(10));
  }
  EXPECT_LE(self.links.peers().size(), kMostPeersKept);
  Offences offences{OffenceOptions()};
  for (size_t i = 0; i < 3 * Offences::kMost; ++i) {
    offences.Count(NodeId(absl::StrCat("peer-", i)), absl::UnixEpoch());
  }
  // It is no crash, and the last is remembered.
  for (int64_t i = 1; i < OffenceOptions().most; ++i) {
    offences.Count(NodeId("peer"), absl::UnixEpoch());
  }
  EXPECT_TRUE(offences.Count(NodeId("peer"), absl::UnixEpoch()));
}

// --------------------------------------------------------------- learners --

class UnboundLearner : public simports::FakeLearner {
 public:
  UnboundLearner() : simports::FakeLearner(1000, 7) {}
  absl::Status Bind(absl::Span<float>, absl::Span<float>,
                    absl::Span<float>) override {
    return absl::ResourceExhaustedError("not enough memory on the GPU");
  }
  absl::Status Initialise(uint64_t) override {
    ADD_FAILURE() << "it is not bound";
    return absl::OkStatus();
  }
  absl::StatusOr<ports::GradientResult> Gradient(
      const ports::GradientRequest&) override {
    ADD_FAILURE() << "it is not bound";
    return ports::GradientResult{};
  }
};

TEST(UnboundLearnerTest, IsNeverCalledAndTheNodeSaysWhy) {
  ClusterOptions options;
  options.nodes = 2;
  options.learner = [](int64_t node) -> std::unique_ptr<simports::FakeLearner> {
    if (node == 0) return std::make_unique<UnboundLearner>();
    return std::make_unique<simports::FakeLearner>(1000, 7);
  };
  SimCluster c(options);
  const core::RunPlan plan = c.MakePlan("d-psgd");
  c.SetPlanEverywhere(plan);
  ASSERT_TRUE(c.node(1).Start().ok());
  const absl::Status started = c.node(0).Start();
  EXPECT_EQ(started.code(), absl::StatusCode::kFailedPrecondition);
  c.RunFor(absl::Seconds(5));
  EXPECT_EQ(c.node(0).phase(), Phase::kFailed);
  EXPECT_EQ(c.node(0).Status().phase_reason, "not enough memory on the GPU");
  EXPECT_EQ(c.node(0).Status().last_error, "not enough memory on the GPU");
  EXPECT_EQ(c.step(0), 0);
  EXPECT_GT(c.step(1), 50);
}

// --------------------------------------------------------------- new runs --

// A gradient that outlives its round is of the run before; so is the memory
// that it writes.
TEST(NewRun, WaitsForAGradientThatOutlivesItsRound) {
  for (const auto& [name, fresh] :
       {std::pair("async-dsgd", false), std::pair("async-dsgd", true),
        std::pair("barrier-dsgd", false), std::pair("barrier-dsgd", true)}) {
    SCOPED_TRACE(absl::StrCat(name, fresh));
    ClusterOptions options;
    options.nodes = 2;
    options.gradient_delay = [](int64_t) { return absl::Seconds(2); };
    RunTwice(options, [&, algorithm = name,
                       fresh_trainer = fresh](SimCluster& c) {
      core::RunPlan plan = c.MakePlan(algorithm, {{"gamma_max", 0.05}});
      c.Run(plan);
      ASSERT_TRUE(c.RunToStep(2));
      c.RunFor(absl::Seconds(1));  // in the midst of a gradient
      plan.version = 2;
      plan.run_id = "run-2";
      ASSERT_TRUE(c.SetPlan(0, plan, fresh_trainer).ok());
      c.RunFor(absl::Milliseconds(300));
      EXPECT_EQ(c.node(0).Status().run_id, "run-1");
      EXPECT_EQ(c.node(0).Status().pending_plan_version, 2U);
      ASSERT_TRUE(
          c.RunUntil([&] { return c.node(0).Status().run_id == "run-2"; },
                     absl::Seconds(3)));
      EXPECT_EQ(c.node(0).phase(), Phase::kIdle);
      ASSERT_TRUE(c.node(0).Start().ok());
      ASSERT_TRUE(c.RunUntil([&] { return c.node(0).Status().gradients > 0; },
                             absl::Seconds(20)));
    });
  }
}

}  // namespace
}  // namespace dfl::runtime
