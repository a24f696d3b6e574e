// What a neighbour may not do: other runs are refused by name, and whatever
// bytes come, the node counts them and goes on in bounded memory.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/codec/encoder.h"
#include "daemon/simports/analytic_learner.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/raw_peer.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

using ports::Phase;
using ports::RefuseReason;

// n0 is a node; n1 to n3 are in the plan and not up.
class HostilePeer : public testing::Test {
 protected:
  explicit HostilePeer(const OffenceOptions& offences = {}) {
    ClusterOptions options;
    options.offences = offences;
    options.seed = 61;
    options.nodes = 4;
    options.transfers.chunk_bytes = 3000;  // a model is two
    cluster_ = std::make_unique<SimCluster>(options);
    for (int64_t i = 1; i < 4; ++i) cluster_->Crash(i);
  }

  void Begin(const std::string& algorithm,
             absl::Duration deadline = absl::Milliseconds(200)) {
    core::KnobValues knobs;
    if (algorithm == "pame") {
      knobs = {{"nu", 1.0}, {"kappa", core::IntRange{1, 1}}};
    }
    core::RunPlan plan = cluster_->MakePlan(algorithm, knobs);
    plan.deadline.exchange = deadline;
    cluster_->Run(plan);
    ASSERT_TRUE(cluster_->RunToStep(5));
    peer_ = std::make_unique<RawPeer>(cluster_->network(), "n1");
    peer_->Dial("n0:1");
    ASSERT_TRUE(cluster_->RunUntil([&] { return peer_->linked(); }));
    cluster_->RunFor(absl::Milliseconds(5));
    ASSERT_FALSE(peer_->Heard<ports::StateFrame>().empty());
    honest_ = peer_->Heard<ports::StateFrame>()[0];
    honest_.step = 0;
    honest_.phase = Phase::kTraining;
  }

  void Send(const ports::Frame& frame) {
    const absl::Status sent = peer_->Send(frame);
    EXPECT_TRUE(sent.ok()) << sent;
    cluster_->RunFor(absl::Milliseconds(5));
  }

  std::vector<ports::RefuseFrame> Ask(uint64_t ask) {
    peer_->Forget();
    Send(ports::AskFrame{ask, ports::AskPurpose::kMix, 0});
    return peer_->Heard<ports::RefuseFrame>();
  }

  int64_t Rejected(const std::string& reason) {
    return cluster_->node(0).Status().rejected[reason];
  }

  std::string WhyNot() {
    for (const PeerStatus& peer : cluster_->node(0).Status().peers) {
      if (peer.node.name() == "n1") return peer.not_mixing;
    }
    return "";
  }

  // The node is alive and well.
  void ExpectGoesOn() {
    const int64_t step = cluster_->step(0);
    cluster_->RunFor(absl::Seconds(2));
    EXPECT_GT(cluster_->step(0), step + 5);
    EXPECT_EQ(cluster_->node(0).phase(), Phase::kTraining);
    EXPECT_LE(cluster_->node(0).transfers().inbound(), 4);
    EXPECT_LE(cluster_->node(0).transfers().outbound(), 8);
  }

  // A push that is right: all 1,000 values 1.5.
  std::pair<ports::TransferBegin, std::string> GoodPush(uint64_t transfer,
                                                        int64_t step) {
    const std::vector<float> values(1000, 1.5F);
    const std::vector<float> buffers(7, 0.5F);
    codec::EncoderInput input;
    input.format = core::MessageFormat{};
    input.values = values;
    input.buffers = buffers;
    auto encoder = codec::Encoder::Create(input);
    EXPECT_TRUE(encoder.ok());
    ports::TransferBegin begin;
    begin.transfer = transfer;
    begin.kind = ports::TransferKind::kPush;
    begin.step = step;
    begin.header = (*encoder)->header_bytes();
    begin.body_bytes = (*encoder)->header().body_bytes();
    return {begin, (*encoder)->Next(1 << 20)};
  }

  std::unique_ptr<SimCluster> cluster_;
  std::unique_ptr<RawPeer> peer_;  // goes before the network
  ports::StateFrame honest_;
};

TEST_F(HostilePeer, OtherRunsModelsAndAlgorithmsAreRefusedByName) {
  Begin("pame");
  auto refused = Ask(1);
  ASSERT_EQ(refused.size(), 1U);  // has not said who it is
  EXPECT_EQ(refused[0].reason, RefuseReason::kNotReady);
  EXPECT_EQ(Rejected("not-ready"), 1);

  ports::StateFrame state = honest_;
  state.run_id = "another";
  Send(state);
  refused = Ask(2);
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].reason, RefuseReason::kOtherRun);
  EXPECT_EQ(refused[0].ask, 2U);
  EXPECT_EQ(Rejected("other-run"), 1);
  // It trains and is linked, and yet nothing comes: status says why.
  EXPECT_EQ(WhyNot(),
            "run: run-1 here, another there; apply one plan to both (dflctl "
            "plan apply)");

  state = honest_;
  state.contract.fill(0x0123);
  Send(state);
  refused = Ask(3);
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].reason, RefuseReason::kOtherModel);
  EXPECT_EQ(Rejected("other-model"), 1);

  state = honest_;
  state.algorithm = "d-psgd";
  Send(state);
  refused = Ask(4);
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].reason, RefuseReason::kOtherAlgorithm);
  EXPECT_EQ(Rejected("other-algorithm"), 1);
  // For a state to start from the algorithm does not matter.
  peer_->Forget();
  Send(ports::AskFrame{5, ports::AskPurpose::kState, 0});
  EXPECT_TRUE(peer_->Heard<ports::RefuseFrame>().empty());
  EXPECT_EQ(peer_->Heard<ports::TransferBegin>().size(), 1U);

  Send(honest_);
  EXPECT_TRUE(Ask(6).empty());
  const NodeStatus status = cluster_->node(0).Status();
  EXPECT_EQ(status.peers[0].rejected, 4);
  EXPECT_EQ(cluster_->log(0).Count<ports::MessageRejected>(), 3);
  ExpectGoesOn();
}

TEST_F(HostilePeer, PushesOfOtherRunsAreRefusedByName) {
  Begin("d-psgd");
  ports::StateFrame state = honest_;
  state.run_id = "another";
  Send(state);
  auto [begin, body] = GoodPush(1, 1);
  Send(begin);
  auto cancelled = peer_->Heard<ports::TransferCancel>();
  ASSERT_EQ(cancelled.size(), 1U);
  EXPECT_EQ(cancelled[0].reason, RefuseReason::kOtherRun);
  EXPECT_FALSE(cancelled[0].by_sender);
  EXPECT_EQ(cluster_->node(0).transfers().inbound(), 0);
  ExpectGoesOn();
}

TEST_F(HostilePeer, AStrangerIsNoNeighbour) {
  Begin("d-psgd");
  RawPeer stranger(cluster_->network(), "stranger");
  stranger.Dial("n0:1");
  cluster_->RunFor(absl::Milliseconds(20));
  ASSERT_TRUE(stranger.Send(honest_).ok());
  auto [begin, body] = GoodPush(1, 1);
  ASSERT_TRUE(stranger.Send(begin).ok());
  cluster_->RunFor(absl::Milliseconds(20));
  auto cancelled = stranger.Heard<ports::TransferCancel>();
  ASSERT_EQ(cancelled.size(), 1U);
  EXPECT_EQ(cancelled[0].reason, RefuseReason::kNotANeighbour);
  EXPECT_EQ(Rejected("not-a-neighbour"), 1);
  ExpectGoesOn();
}

TEST_F(HostilePeer, WrongHeadersAndHugeSizesAreRefusedBeforeMemoryIsTaken) {
  Begin("d-psgd");
  Send(honest_);
  const auto [good, body] = GoodPush(1, cluster_->step(0));

  std::vector<ports::TransferBegin> wrong;
  wrong.push_back(good);
  wrong.back().header = "";
  wrong.push_back(good);
  wrong.back().header[5] ^= 1;  // its checksum
  wrong.push_back(good);
  wrong.back().header.resize(60000, 'x');
  wrong.push_back(good);
  wrong.back().body_bytes = int64_t{1} << 62;
  wrong.push_back(good);
  wrong.back().body_bytes = 0;
  {  // an honest header of another model, 4 GB
    codec::EncodedHeader header;
    header.n = int64_t{1} << 30;
    header.s = header.n;
    header.payload_bytes = 4 * header.n;
    wrong.push_back(good);
    wrong.back().header = codec::SerializeHeader(header);
    wrong.back().body_bytes = header.body_bytes();
  }
  wrong.push_back(good);
  wrong.back().step = (int64_t{1} << 62);

  uint64_t transfer = 10;
  for (ports::TransferBegin& begin : wrong) {
    begin.transfer = ++transfer;
    peer_->Forget();
    Send(begin);
    const auto cancelled = peer_->Heard<ports::TransferCancel>();
    ASSERT_EQ(cancelled.size(), 1U) << "transfer " << transfer;
    EXPECT_EQ(cancelled[0].transfer, transfer);
    EXPECT_EQ(cancelled[0].reason, RefuseReason::kBadMessage);
    EXPECT_FALSE(cancelled[0].text.empty());
    EXPECT_EQ(cluster_->node(0).transfers().inbound(), 0);
  }
  EXPECT_EQ(Rejected("bad-message"), static_cast<int64_t>(wrong.size()));
  ExpectGoesOn();
}

// One bit is for increments of replicas, never for a model.
TEST_F(HostilePeer, StepsAreNoModelAndNoOtherMass) {
  Begin("d-psgd");
  Send(honest_);
  const core::StepCodes codes(1, 1, 1000);
  codec::EncoderInput input;
  input.format.values = core::ValueType::kSteps;
  input.format.bits = input.format.vectors = 1;
  input.values = codes.values;
  input.steps = &codes;
  auto encoder = codec::Encoder::Create(input);
  ASSERT_TRUE(encoder.ok());
  ports::TransferBegin begin = GoodPush(1, cluster_->step(0)).first;
  begin.header = (*encoder)->header_bytes();
  begin.body_bytes = (*encoder)->header().body_bytes();
  Send(begin);
  ASSERT_EQ(peer_->Heard<ports::TransferCancel>().size(), 1U);
  const std::string text = peer_->Heard<ports::TransferCancel>()[0].text;
  EXPECT_NE(text.find("never for models"), std::string::npos) << text;
  EXPECT_EQ(Rejected("bad-message"), 1);
  ExpectGoesOn();
}

TEST_F(HostilePeer, GapsOverrunsAndWrongBodiesEndTheTransfer) {
  Begin("d-psgd");
  Send(honest_);
  const auto [good, body] = GoodPush(1, cluster_->step(0) + 5);
  const auto begin = [&](uint64_t id) {
    ports::TransferBegin b = good;
    b.transfer = id;
    peer_->Forget();
    Send(b);
    EXPECT_EQ(cluster_->node(0).transfers().inbound(), 1);
  };
  const auto expect_refused = [&](uint64_t id) {
    const auto cancelled = peer_->Heard<ports::TransferCancel>();
    ASSERT_EQ(cancelled.size(), 1U);
    EXPECT_EQ(cancelled[0].transfer, id);
    EXPECT_EQ(cancelled[0].reason, RefuseReason::kBadMessage);
    EXPECT_EQ(cluster_->node(0).transfers().inbound(), 0);
  };
  begin(1);
  Send(ports::Chunk{1, 100, body.substr(100, 50)});  // a gap
  expect_refused(1);
  begin(2);
  Send(ports::Chunk{2, 0, body + "x"});  // longer than announced
  expect_refused(2);
  begin(3);
  std::string broken = body;
  broken[17] ^= 4;
  Send(ports::Chunk{3, 0, broken});
  expect_refused(3);
  EXPECT_EQ(Rejected("bad-message"), 3);

  // Chunks of transfers that are not known are dropped: they may have been
  // under way when a transfer was given up.
  Send(ports::Chunk{99, 0, body});
  Send(ports::Chunk{99, INT64_MAX - (2 << 20), "x"});
  // An empty chunk and a repeated one change nothing; the rest completes it.
  begin(4);
  Send(ports::Chunk{4, 0, ""});
  Send(ports::Chunk{4, 0, body.substr(0, 500)});
  Send(ports::Chunk{4, 0, body.substr(0, 400)});
  Send(ports::Chunk{4, 300, body.substr(300)});
  const auto acks = peer_->Heard<ports::TransferAck>();
  ASSERT_FALSE(acks.empty());
  EXPECT_TRUE(acks.back().complete);
  EXPECT_EQ(acks.back().received, good.body_bytes);
  // Announced once more, as after a lost acknowledgement: not taken twice.
  const int64_t received = cluster_->node(0).Status().models_received;
  peer_->Forget();
  ports::TransferBegin again = good;
  again.transfer = 4;
  Send(again);
  ASSERT_EQ(peer_->Heard<ports::TransferAck>().size(), 1U);
  EXPECT_TRUE(peer_->Heard<ports::TransferAck>()[0].complete);
  EXPECT_EQ(cluster_->node(0).Status().models_received, received);
  ExpectGoesOn();
}

TEST_F(HostilePeer, DishonestAcknowledgementsEndTheTransfer) {
  Begin("pame");
  Send(honest_);
  uint64_t ask = 100;
  const auto start = [&]() -> uint64_t {
    peer_->Forget();
    Send(ports::AskFrame{++ask, ports::AskPurpose::kMix, 0});
    const auto begun = peer_->Heard<ports::TransferBegin>();
    EXPECT_EQ(begun.size(), 1U);
    return begun.empty() ? 0 : begun[0].transfer;
  };
  int64_t bad = 0;
  const auto expect_given_up = [&](uint64_t id) {
    const auto cancelled = peer_->Heard<ports::TransferCancel>();
    ASSERT_EQ(cancelled.size(), 1U);
    EXPECT_EQ(cancelled[0].transfer, id);
    EXPECT_TRUE(cancelled[0].by_sender);
    EXPECT_EQ(cluster_->node(0).transfers().outbound(), 0);
    EXPECT_EQ(Rejected("bad-message"), ++bad);
  };
  uint64_t id = start();
  Send(ports::TransferAck{id, 1, false});  // nothing was sent yet
  expect_given_up(id);
  id = start();
  Send(ports::TransferAck{id, 0, true});
  expect_given_up(id);
  id = start();
  Send(ports::TransferAck{id, 0, false});
  ASSERT_EQ(peer_->Heard<ports::Chunk>().size(), 2U);
  Send(ports::TransferAck{id, INT64_MAX, false});
  expect_given_up(id);
  id = start();
  Send(ports::TransferAck{id, 0, false});
  Send(ports::TransferAck{id, 50, false});
  Send(ports::TransferAck{id, 20, false});
  expect_given_up(id);
  // Unknown ones are ignored.
  Send(ports::TransferAck{12345, 20, true});
  EXPECT_EQ(Rejected("bad-message"), bad);
  ExpectGoesOn();
}

TEST_F(HostilePeer, AnswersUnderWayToOnePeerAreBounded) {
  Begin("pame");
  Send(honest_);
  peer_->Forget();
  for (uint64_t ask = 1; ask <= 200; ++ask) {
    ASSERT_TRUE(
        peer_->Send(ports::AskFrame{ask, ports::AskPurpose::kMix, 0}).ok());
    cluster_->RunFor(absl::Milliseconds(7));  // another model each time
  }
  EXPECT_LE(cluster_->node(0).transfers().outbound(), 4);
  const auto refused = peer_->Heard<ports::RefuseFrame>();
  EXPECT_GT(refused.size(), 100U);
  EXPECT_EQ(refused.back().reason, RefuseReason::kBusy);
  ExpectGoesOn();
}

TEST_F(HostilePeer, TransfersUnderWayFromOnePeerAreBounded) {
  Begin("d-psgd");
  Send(honest_);
  for (uint64_t id = 1; id <= 50; ++id) {
    Send(GoodPush(id, cluster_->step(0)).first);
  }
  EXPECT_EQ(cluster_->node(0).transfers().inbound(), 4);
  ExpectGoesOn();
}

TEST_F(HostilePeer, AnAnswerNobodyAskedForIsRefused) {
  Begin("pame");
  Send(honest_);
  ports::TransferBegin begin = GoodPush(1, 3).first;
  begin.kind = ports::TransferKind::kAnswer;
  begin.ask = 77;
  peer_->Forget();
  Send(begin);
  ASSERT_EQ(peer_->Heard<ports::TransferCancel>().size(), 1U);
  EXPECT_EQ(cluster_->node(0).transfers().inbound(), 0);
  ExpectGoesOn();
}

// Nobody vouches for anything in a network without certificates.
TEST_F(HostilePeer, SignedRecordsAreBadMessagesInAnInsecureNetwork) {
  Begin("pame");
  ports::RecordId id;
  id.kind = 1;
  id.counter = 9;
  id.hash.assign(ports::kRecordHashBytes, 'h');
  Send(ports::RecordSummary{{id}});
  Send(ports::RecordWant{id});
  Send(ports::RecordPart{id, 3, 0, "abc"});
  EXPECT_EQ(Rejected("bad-message"), 3);
  EXPECT_TRUE(peer_->Heard<ports::RecordSummary>().empty());
  EXPECT_TRUE(peer_->Heard<ports::RecordWant>().empty());
  EXPECT_TRUE(peer_->Heard<ports::RecordPart>().empty());
  ExpectGoesOn();
}

TEST_F(HostilePeer, AFalseStepDoesNotMoveTheNode) {
  Begin("d-psgd");
  honest_.step = INT64_MAX;
  Send(honest_);
  Send(ports::AskFrame{1, ports::AskPurpose::kMix, INT64_MAX});
  Send(GoodPush(1, INT64_MAX).first);
  cluster_->RunFor(absl::Seconds(3));
  EXPECT_LT(cluster_->step(0), 2000);
  // It starts fresh alone, so it may have asked for the liar's model; it goes
  // on without.
  cluster_->RunFor(absl::Seconds(30));
  ExpectGoesOn();
}

TEST_F(HostilePeer, WhoKeepsLyingIsShutOut) {
  Begin("d-psgd");
  // Here is nobody who takes records.
  ports::RecordId id;
  id.kind = 1;
  id.counter = 9;
  id.hash.assign(ports::kRecordHashBytes, 'h');
  for (int i = 0; peer_->linked() && i < 100; ++i) Send(ports::RecordWant{id});
  EXPECT_FALSE(peer_->linked());
  EXPECT_EQ(Rejected("bad-message"), OffenceOptions().most);
  // It may dial, and is told to stay away.
  peer_->Dial("n0:1");
  cluster_->RunFor(absl::Seconds(1));
  EXPECT_FALSE(peer_->linked());
  ExpectGoesOn();
  cluster_->RunFor(OffenceOptions().first);
  peer_->Dial("n0:1");
  cluster_->RunFor(absl::Seconds(1));
  EXPECT_TRUE(peer_->linked());
}

// Frames of every kind with fields from small pools, so that they often refer
// to something that exists.
ports::Frame RandomFrame(Rng& rng, const ports::TransferBegin& good,
                         const std::string& body,
                         const ports::StateFrame& honest) {
  const auto id = [&] { return rng.Below(12); };
  const auto size = [&]() -> int64_t {
    switch (rng.Below(4)) {
      case 0:
        return static_cast<int64_t>(rng.Below(10));
      case 1:
        return static_cast<int64_t>(rng.Below(5000));
      case 2:
        return static_cast<int64_t>(body.size());
      default:
        return static_cast<int64_t>(rng.Next() >> (1 + rng.Below(62)));
    }
  };
  const auto ask = [&] { return (rng.Below(3) << 32) | rng.Below(200); };
  const auto reason = [&] {
    return static_cast<RefuseReason>(1 + rng.Below(9));
  };
  switch (rng.Below(9)) {
    case 0: {
      ports::StateFrame state = honest;
      state.phase = static_cast<Phase>(1 + rng.Below(7));
      if (rng.Bernoulli(0.2)) state.run_id = "x";
      if (rng.Bernoulli(0.2)) state.step = static_cast<int64_t>(rng.Below(50));
      return state;
    }
    case 1:
      return ports::AskFrame{
          ask(), static_cast<ports::AskPurpose>(1 + rng.Below(2)), size()};
    case 2:
      return ports::RefuseFrame{ask(), reason(), "no"};
    case 3:
      return ports::CancelAskFrame{ask()};
    case 4: {
      ports::TransferBegin begin = good;
      begin.transfer = id();
      begin.kind = static_cast<ports::TransferKind>(1 + rng.Below(3));
      begin.ask = ask();
      begin.step = size();
      if (rng.Bernoulli(0.3)) {
        begin.header[rng.Below(begin.header.size())] ^=
            static_cast<char>(1 + rng.Below(255));
      }
      if (rng.Bernoulli(0.2)) begin.body_bytes = size();
      return begin;
    }
    case 5: {
      const size_t from = rng.Below(body.size() + 1);
      std::string data = body.substr(from, rng.Below(5000));
      if (!data.empty() && rng.Bernoulli(0.2))
        data[rng.Below(data.size())] ^= 1;
      return ports::Chunk{
          id(), rng.Bernoulli(0.7) ? static_cast<int64_t>(from) : size() / 2,
          data};
    }
    case 6:
      return ports::TransferAck{id(), size(), rng.Bernoulli(0.3)};
    case 7:
      return ports::SkipFrame{size()};
    default:
      return ports::TransferCancel{id(), rng.Bernoulli(0.5), reason(), "why"};
  }
}

class RandomFrames
    : public HostilePeer,
      public testing::WithParamInterface<std::tuple<std::string, uint64_t>> {
 protected:
  // Whatever it says, it may go on saying.
  RandomFrames() : HostilePeer({.most = INT64_MAX}) {}
};

TEST_P(RandomFrames, NeverStopTheNode) {
  const auto [algorithm, seed] = GetParam();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  Begin(algorithm);
  Rng rng(seed);
  const auto [good, body] = GoodPush(1, 10);
  for (int i = 0; i < 5000; ++i) {
    // Frames over the bounds are the transport's to refuse.
    (void)peer_->Send(RandomFrame(rng, good, body, honest_));
    if (i % 10 == 0) {
      cluster_->RunFor(absl::Milliseconds(3));
      ASSERT_LE(cluster_->node(0).transfers().inbound(), 4);
      ASSERT_LE(cluster_->node(0).transfers().outbound(), 6);
    }
    if (i % 1000 == 999) {
      peer_->Hang();
      cluster_->RunFor(absl::Milliseconds(50));
      peer_->Dial("n0:1");
      ASSERT_TRUE(cluster_->RunUntil([&] { return peer_->linked(); }));
    }
  }
  EXPECT_GT(Rejected("bad-message"), 50);
  peer_->Hang();
  cluster_->RunFor(absl::Seconds(60));
  ExpectGoesOn();
  EXPECT_EQ(cluster_->node(0).transfers().inbound(), 0);
  EXPECT_EQ(cluster_->node(0).transfers().outbound(), 0);
}

INSTANTIATE_TEST_SUITE_P(HostilePeer, RandomFrames,
                         testing::Combine(testing::Values("pame", "d-psgd"),
                                          testing::Range<uint64_t>(1, 6)));

}  // namespace
}  // namespace dfl::runtime
