// Models on their way: chunks, windows, lost links, restarts.
#include "daemon/runtime/transfers/transfers.h"

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/runtime/parcels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

constexpr int64_t kN = 100'000;  // 400 kB dense

// Links and Transfers of one node, without the node.
class End : public Links::Listener, public Transfers::Listener {
 public:
  End(simports::SimNetwork& network, const std::string& name,
      TransfersOptions options, int64_t max_queued = 4 << 20,
      uint64_t incarnation = 1)
      : log(network.scheduler()),
        loop(network.scheduler()),
        transport(network, loop, Options(name, max_queued, incarnation)),
        links(LinksOptions{NodeId(name), incarnation}, loop, transport, log,
              *this),
        transfers(options, loop, loop, links, *this) {
    loop.set_worker_delay(absl::Microseconds(50));
  }

  void OnPeerUp(const NodeId& peer, bool restarted) override {
    transfers.OnPeerUp(peer, restarted);
  }
  void OnPeerDown(const NodeId& peer, const absl::Status&) override {
    transfers.OnPeerDown(peer);
  }
  void OnPeerFrame(const NodeId& peer, ports::Frame frame) override {
    if (auto* begin = std::get_if<ports::TransferBegin>(&frame)) {
      ++begins;
      inline_bytes += static_cast<int64_t>(begin->body.size());
      transfers.OnFrame(peer, std::move(*begin));
    } else if (const auto* chunk = std::get_if<ports::Chunk>(&frame)) {
      chunk_bytes += static_cast<int64_t>(chunk->data.size());
      transfers.OnFrame(peer, *chunk);
    } else if (auto* ack = std::get_if<ports::TransferAck>(&frame)) {
      transfers.OnFrame(peer, *ack);
    } else if (auto* cancel = std::get_if<ports::TransferCancel>(&frame)) {
      transfers.OnFrame(peer, *cancel);
    } else if (auto* refuse = std::get_if<ports::RefuseFrame>(&frame)) {
      refused.push_back(*refuse);
    }
  }
  void OnPeerWritable(const NodeId& peer) override {
    transfers.OnPeerWritable(peer);
  }
  void OnAddressFailed(const std::string&) override {}

  Admission Admit(const NodeId&, const ports::TransferBegin& begin,
                  const codec::EncodedHeader*) override {
    if (!admits) return Refusal{ports::RefuseReason::kNotReady, "not now"};
    return ModelLengths{kN, begin.kind == ports::TransferKind::kMass ? 0 : 3};
  }
  std::optional<Refusal> Recheck(const NodeId&, ports::TransferKind, uint64_t,
                                 const ModelLengths&) override {
    return std::nullopt;
  }
  void OnModel(const NodeId&, ports::TransferKind, uint64_t, int64_t step,
               std::vector<double> /*scalars*/, absl::Duration age,
               std::unique_ptr<codec::DecodedMessage> message) override {
    steps.push_back(step);
    ages.push_back(age);
    values.resize(kN);
    if (message->header().format.coordinates == core::Coordinates::kDense) {
      EXPECT_TRUE(message->CopyDense(absl::MakeSpan(values)).ok());
    }
    EXPECT_EQ(message->buffers().size(), 3U);
  }
  double OnMass(const NodeId&, uint64_t tracker_epoch, uint64_t sequence,
                int64_t, std::vector<double>,
                std::unique_ptr<codec::DecodedMessage> message) override {
    masses.emplace_back(tracker_epoch, sequence);
    values.assign(kN, 0.0F);
    const std::vector<float> zero(kN, 0.0F);
    message->AddDifference({0, kN}, zero, 1, absl::MakeSpan(values), {});
    return 2.5;
  }
  void OnTransferLost(const NodeId&, ports::TransferKind, uint64_t,
                      const std::string& why) override {
    lost.push_back(why);
  }
  void OnBadMessage(const NodeId&, ports::RefuseReason,
                    const std::string& text) override {
    bad.push_back(text);
  }

  EventLog log;
  simports::SimLoop loop;
  simports::SimTransport transport;
  Links links;
  Transfers transfers;
  bool admits = true;
  int64_t begins = 0;
  int64_t inline_bytes = 0;
  int64_t chunk_bytes = 0;
  std::vector<int64_t> steps;
  std::vector<std::pair<uint64_t, uint64_t>> masses;  // epoch, sequence
  std::vector<absl::Duration> ages;
  std::vector<float> values;
  std::vector<std::string> lost;
  std::vector<std::string> bad;
  std::vector<ports::RefuseFrame> refused;

 private:
  static simports::SimTransportOptions Options(const std::string& name,
                                               int64_t max_queued,
                                               uint64_t incarnation) {
    simports::SimTransportOptions options;
    options.node = NodeId(name);
    options.incarnation = incarnation;
    options.address = name + ":1";
    options.max_queued_bytes = max_queued;
    return options;
  }
};

class TransfersTest : public testing::Test {
 protected:
  void Connect(TransfersOptions options = Small(), int64_t max_queued = 4 << 20,
               double rate = 100e3,
               absl::Duration delay = absl::Milliseconds(5)) {
    options_ = options;
    simports::SimNetworkOptions network;
    network.path.rate = rate;
    network.path.delay = delay;
    network.keepalive_timeout = absl::Seconds(600);
    network_ = std::make_unique<simports::SimNetwork>(scheduler_, 1, network);
    a_ = std::make_unique<End>(*network_, "a", options, max_queued);
    b_ = std::make_unique<End>(*network_, "b", options, max_queued);
    ASSERT_TRUE(a_->links.AddAddress("b:1").ok());
    ASSERT_TRUE(scheduler_.RunUntil(
        [&] {
          return a_->links.IsUp(NodeId("b")) && b_->links.IsUp(NodeId("a"));
        },
        absl::Seconds(5)));
  }
  static TransfersOptions Small() {
    TransfersOptions options;
    options.chunk_bytes = 10'000;
    options.window_bytes = 40'000;
    return options;
  }

  // a sends b a model with values 0, 1, 2, ...
  void Send(int64_t step = 7, core::MessageFormat format = {}) {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->parameters.resize(kN);
    for (int64_t l = 0; l < kN; ++l) {
      snapshot->parameters[l] = static_cast<float>(l);
    }
    snapshot->buffers.assign(3, 1.0F);
    snapshot->parameters[odd_] = odd_value_;
    Outgoing outgoing;
    outgoing.to = NodeId("b");
    outgoing.kind = kind_;
    outgoing.ask = 11;
    outgoing.step = step;
    outgoing.since = since_;
    outgoing.format = format;
    outgoing.sent_coordinates = kN / 10;
    outgoing.snapshot = snapshot;
    outgoing.done = [this](const absl::StatusOr<Receipt>& result) {
      results_.push_back(result.status());
      if (result.ok()) sent_ = result->sent;
    };
    a_->transfers.Send(std::move(outgoing));
  }

  bool Arrived() const { return !results_.empty() && !b_->steps.empty(); }
  void ExpectIntact() {
    ASSERT_EQ(b_->steps.size(), 1U);
    for (int64_t l = 0; l < kN; ++l) {
      ASSERT_EQ(b_->values[l], l == odd_ ? odd_value_ : static_cast<float>(l));
    }
    ASSERT_EQ(results_.size(), 1U);
    EXPECT_TRUE(results_[0].ok()) << results_[0];
    EXPECT_EQ(a_->transfers.outbound(), 0);
    EXPECT_EQ(b_->transfers.inbound(), 0);
    EXPECT_TRUE(a_->bad.empty());
    EXPECT_TRUE(b_->bad.empty());
  }

  simports::SimScheduler scheduler_;
  TransfersOptions options_;
  std::unique_ptr<simports::SimNetwork> network_;
  std::unique_ptr<End> a_;
  std::unique_ptr<End> b_;
  ports::TransferKind kind_ = ports::TransferKind::kAnswer;
  absl::Time since_ = absl::InfiniteFuture();
  int64_t odd_ = 5;  // the coordinate that may have another value
  float odd_value_ = 5;
  std::vector<absl::Status> results_;
  codec::SentValues sent_;
};

TEST_F(TransfersTest, AModelArrivesWholeInChunks) {
  Connect();
  Send();
  EXPECT_TRUE(results_.empty());  // never from inside
  ASSERT_TRUE(
      scheduler_.RunUntil([&] { return Arrived(); }, absl::Seconds(20)));
  ExpectIntact();
  EXPECT_EQ(b_->steps[0], 7);
  EXPECT_EQ(b_->chunk_bytes, 4 * kN + 3 * 4 + 4);
}

// Held back for 3 s by the sender, then 50 ms and more under way, once over a
// link that is lost; no clock of the other end is looked at.
class AgeTest : public TransfersTest,
                public testing::WithParamInterface<bool> {};

TEST_P(AgeTest, APushTellsHowOldItIs) {
  Connect(Small(), 4 << 20, 10e6, absl::Milliseconds(50));
  kind_ = ports::TransferKind::kPush;
  since_ = scheduler_.Now() - absl::Seconds(3);
  Send();
  if (GetParam()) {
    scheduler_.RunFor(absl::Milliseconds(170));  // chunks are under way
    network_->ResetLinks("a:1", "b:1");
  }
  ASSERT_TRUE(scheduler_.RunUntil([&] { return !b_->ages.empty(); },
                                  absl::Seconds(30)));
  const absl::Duration age = scheduler_.Now() - since_;
  EXPECT_GT(age, absl::Seconds(GetParam() ? 3.2 : 3.15));
  EXPECT_LT(absl::AbsDuration(b_->ages[0] - age), absl::Milliseconds(2))
      << b_->ages[0] << " where " << age << " passed";
}

INSTANTIATE_TEST_SUITE_P(Cut, AgeTest, testing::Bool());

// ----------------------------------------------------------- short bodies ----

class ShortBodyTest : public TransfersTest {
 protected:
  // 50 ms each way; a tenth of the model in int8 is 10 kB.
  void SetUp() override {
    TransfersOptions options;
    options.chunk_bytes = chunk_bytes_;
    Connect(options, 4 << 20, /*rate=*/0, absl::Milliseconds(50));
  }
  void SendShort() {
    Send(7, {core::Coordinates::kRandom, core::ValueType::kInt8});
  }
  absl::Duration TimeUntil(const std::function<bool()>& done) {
    const absl::Time began = scheduler_.Now();
    EXPECT_TRUE(scheduler_.RunUntil(done, absl::Seconds(30)));
    return scheduler_.Now() - began;
  }

  int64_t chunk_bytes_ = 256 << 10;
};

TEST_F(ShortBodyTest, ComesWithItsAnnouncement) {
  SendShort();
  const absl::Duration took = TimeUntil([&] { return !b_->steps.empty(); });
  EXPECT_LT(took, absl::Milliseconds(51));  // one way, where chunks take three
  EXPECT_LT(TimeUntil([&] { return Arrived(); }), absl::Milliseconds(51));
  EXPECT_TRUE(results_[0].ok()) << results_[0];
  EXPECT_EQ(b_->chunk_bytes, 0);
  EXPECT_EQ(a_->transfers.outbound(), 0);
  EXPECT_EQ(b_->transfers.inbound(), 0);
}

TEST_F(ShortBodyTest, IsOneChunkAtMost) {
  Send();  // 400 kB
  TimeUntil([&] { return Arrived(); });
  EXPECT_EQ(b_->chunk_bytes, 4 * kN + 3 * 4 + 4);
}

TEST_F(ShortBodyTest, IsAnnouncedAgainAfterALostLinkAndTakenOnce) {
  SendShort();
  TimeUntil([&] { return !b_->steps.empty(); });
  network_->ResetLinks("a:1", "b:1");  // the acknowledgement is lost with it
  TimeUntil([&] { return Arrived(); });
  EXPECT_EQ(b_->begins, 2);
  EXPECT_EQ(b_->steps.size(), 1U);
  EXPECT_TRUE(results_[0].ok()) << results_[0];
}

TEST_F(ShortBodyTest, IsRefusedAsAnyOther) {
  b_->admits = false;
  SendShort();
  TimeUntil([&] { return !results_.empty(); });
  EXPECT_NE(results_[0].message().find("not now"), std::string::npos)
      << results_[0];
  EXPECT_TRUE(b_->steps.empty());
}

// The first one of a link is too young by its own way; then the way is known.
TEST_F(ShortBodyTest, ItsAgeCountsTheWayThatTheOneBeforeTook) {
  kind_ = ports::TransferKind::kPush;
  for (const size_t sent : {1U, 2U}) {
    since_ = scheduler_.Now() - absl::Seconds(3);
    SendShort();
    TimeUntil([&] { return b_->ages.size() == sent; });
    TimeUntil([&] { return results_.size() == sent; });
  }
  EXPECT_LT(absl::AbsDuration(b_->ages[0] - absl::Seconds(3)),
            absl::Milliseconds(2));
  EXPECT_LT(absl::AbsDuration(b_->ages[1] - absl::Seconds(3.05)),
            absl::Milliseconds(2));
}

TEST_F(TransfersTest, NoMoreThanAWindowIsUnacknowledged) {
  Connect(Small(), 4 << 20, /*rate=*/0, absl::Milliseconds(100));
  Send();
  const absl::Time began = scheduler_.Now();
  while (!Arrived()) {
    scheduler_.RunFor(absl::Milliseconds(50));
    const double trips = absl::ToDoubleSeconds(scheduler_.Now() - began) / 0.2;
    ASSERT_LE(b_->chunk_bytes, 40'000 * (trips + 1));
  }
  ExpectIntact();
  // 400 kB in windows of 40 kB, each a round trip of 0.2 s.
  EXPECT_NEAR(absl::ToDoubleSeconds(scheduler_.Now() - began), 2.2, 0.5);
}

// A quarter of the window takes longer than a sender waits.
TEST_F(TransfersTest, OnASlowLinkWhatHasComeIsAcknowledgedInTime) {
  TransfersOptions options;
  options.chunk_bytes = 10'000;
  options.stalled_after = absl::Seconds(60);
  Connect(options, 4 << 20, 2e3);
  Send();
  ASSERT_TRUE(
      scheduler_.RunUntil([&] { return Arrived(); }, absl::Seconds(300)));
  ExpectIntact();
  EXPECT_EQ(b_->begins, 1);
}

TEST_F(TransfersTest, AQueueSmallerThanTheWindowIsNoObstacle) {
  Connect(Small(), /*max_queued=*/15'000);
  Send();
  ASSERT_TRUE(
      scheduler_.RunUntil([&] { return Arrived(); }, absl::Seconds(20)));
  ExpectIntact();
}

TEST_F(TransfersTest, GoesOnFromTheAcknowledgedOffsetAfterALostLink) {
  Connect();
  Send();
  scheduler_.RunFor(absl::Seconds(2));
  EXPECT_GT(b_->chunk_bytes, 150'000);
  network_->ResetLinks("a:1", "b:1");
  scheduler_.RunFor(absl::Milliseconds(50));
  EXPECT_TRUE(b_->steps.empty());
  EXPECT_EQ(b_->transfers.inbound(), 1);
  ASSERT_TRUE(
      scheduler_.RunUntil([&] { return Arrived(); }, absl::Seconds(20)));
  ExpectIntact();
  EXPECT_EQ(b_->begins, 2);
  EXPECT_TRUE(b_->lost.empty());
  // Nothing that had arrived was sent again.
  EXPECT_EQ(b_->chunk_bytes, 4 * kN + 3 * 4 + 4);
}

TEST_F(TransfersTest, SurvivesManyLostLinks) {
  Connect();
  Send();
  for (int i = 0; i < 8; ++i) {
    scheduler_.RunFor(absl::Seconds(3));
    network_->ResetLinks("a:1", "b:1");
  }
  ASSERT_TRUE(
      scheduler_.RunUntil([&] { return Arrived(); }, absl::Seconds(60)));
  ExpectIntact();
}

TEST_F(TransfersTest, ALinkThatDoesNotComeBackEndsItAtBothEnds) {
  TransfersOptions options = Small();
  options.resume_within = absl::Seconds(8);
  Connect(options);
  Send();
  scheduler_.RunFor(absl::Seconds(1));
  network_->Cut("a:1", "b:1");
  scheduler_.RunFor(absl::Seconds(7.9));
  EXPECT_TRUE(results_.empty());
  EXPECT_EQ(b_->transfers.inbound(), 1);
  scheduler_.RunFor(absl::Seconds(0.2));
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_TRUE(absl::IsUnavailable(results_[0])) << results_[0];
  EXPECT_EQ(b_->lost.size(), 1U);
  EXPECT_EQ(a_->transfers.outbound(), 0);
  EXPECT_EQ(b_->transfers.inbound(), 0);
  EXPECT_TRUE(b_->steps.empty());
}

TEST_F(TransfersTest, OneThatStartsWithoutALinkWaitsForItNoLonger) {
  TransfersOptions options = Small();
  options.resume_within = absl::Seconds(8);
  Connect(options);
  network_->Cut("a:1", "b:1");
  scheduler_.RunFor(absl::Seconds(1));
  Send(1);
  scheduler_.RunFor(absl::Seconds(9));
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_TRUE(absl::IsUnavailable(results_[0]));
  EXPECT_EQ(a_->transfers.outbound(), 0);
  results_.clear();
  Send(2);
  network_->Heal("a:1", "b:1");
  ASSERT_TRUE(
      scheduler_.RunUntil([&] { return Arrived(); }, absl::Seconds(20)));
  ExpectIntact();
}

TEST_F(TransfersTest, ARestartOfTheReceiverDropsIt) {
  Connect();
  Send();
  scheduler_.RunFor(absl::Seconds(1));
  b_.reset();
  b_ = std::make_unique<End>(*network_, "b", options_, 4 << 20, 2);
  scheduler_.RunFor(absl::Seconds(10));
  ASSERT_TRUE(a_->links.IsUp(NodeId("b")));
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_TRUE(absl::IsUnavailable(results_[0])) << results_[0];
  EXPECT_TRUE(b_->steps.empty());
  EXPECT_EQ(b_->begins, 0);
}

TEST_F(TransfersTest, ARestartOfTheSenderDropsIt) {
  Connect();
  Send();
  scheduler_.RunFor(absl::Seconds(1));
  a_.reset();
  a_ = std::make_unique<End>(*network_, "a", options_, 4 << 20, 2);
  ASSERT_TRUE(a_->links.AddAddress("b:1").ok());
  scheduler_.RunFor(absl::Seconds(10));
  EXPECT_EQ(b_->lost, std::vector<std::string>{"the peer restarted"});
  EXPECT_EQ(b_->transfers.inbound(), 0);
  EXPECT_TRUE(results_.empty());  // of a process that is gone
}

TEST_F(TransfersTest, ALostLastAcknowledgementIsRepeatedNotTheModel) {
  Connect();
  Send();
  // Let everything through but the last acknowledgement.
  ASSERT_TRUE(scheduler_.RunUntil(
      [&] { return b_->chunk_bytes >= 4 * kN + 16; }, absl::Seconds(20)));
  network_->BlackHoleOneWay("b:1", "a:1");
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_EQ(b_->steps.size(), 1U);
  EXPECT_TRUE(results_.empty());
  network_->ResetLinks("a:1", "b:1");
  network_->Heal("a:1", "b:1");
  ASSERT_TRUE(scheduler_.RunUntil([&] { return !results_.empty(); },
                                  absl::Seconds(20)));
  ExpectIntact();
  EXPECT_EQ(b_->begins, 2);
  EXPECT_EQ(b_->chunk_bytes, 4 * kN + 16);
}

// The receiver has lost what it had acknowledged: the sender, which kept no
// more than a window, must not wait for ever.
TEST_F(TransfersTest, AReceiverThatForgotEndsIt) {
  kind_ = ports::TransferKind::kPush;
  Connect();
  Send();
  scheduler_.RunFor(absl::Seconds(2));
  network_->ResetLinks("a:1", "b:1");
  scheduler_.RunFor(absl::Milliseconds(10));
  b_->transfers.Reset();
  scheduler_.RunFor(absl::Seconds(10));
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_FALSE(results_[0].ok());
  EXPECT_EQ(a_->transfers.outbound(), 0);
  EXPECT_EQ(b_->transfers.inbound(), 0);
  EXPECT_TRUE(a_->bad.empty());
}

TEST_F(TransfersTest, ARefusedOneEndsWithTheReason) {
  Connect();
  b_->admits = false;
  Send();
  scheduler_.RunFor(absl::Seconds(1));
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_TRUE(absl::IsFailedPrecondition(results_[0]));
  EXPECT_NE(results_[0].message().find("not now"), std::string::npos)
      << results_[0];
}

TEST_F(TransfersTest, AModelThatIsNotFiniteIsNotSent) {
  Connect();
  odd_value_ = std::numeric_limits<float>::quiet_NaN();
  Send();
  scheduler_.RunFor(absl::Seconds(1));
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_TRUE(absl::IsInvalidArgument(results_[0])) << results_[0];
  ASSERT_EQ(b_->refused.size(), 1U);
  EXPECT_EQ(b_->refused[0].ask, 11U);
  EXPECT_EQ(b_->begins, 0);
}

// Values are checked as they are encoded: the first window may be on its way.
TEST_F(TransfersTest, OneThatTurnsOutNotToBeFiniteIsCalledOff) {
  Connect();
  odd_ = kN - 1;
  odd_value_ = std::numeric_limits<float>::quiet_NaN();
  Send();
  scheduler_.RunFor(absl::Seconds(10));
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_TRUE(absl::IsInvalidArgument(results_[0])) << results_[0];
  EXPECT_GT(b_->chunk_bytes, 0);
  EXPECT_TRUE(b_->steps.empty());
  ASSERT_EQ(b_->lost.size(), 1U);
  EXPECT_THAT(b_->lost[0], testing::HasSubstr("parameter 99999 is nan"));
  EXPECT_TRUE(b_->bad.empty());
  EXPECT_EQ(a_->transfers.outbound(), 0);
  EXPECT_EQ(b_->transfers.inbound(), 0);
}

TEST_F(TransfersTest, EitherEndMayLoseInterest) {
  Connect();
  Send();
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_TRUE(
      b_->transfers.InboundMoved(NodeId("a"), 11, absl::Milliseconds(500)));
  EXPECT_FALSE(b_->transfers.InboundMoved(NodeId("a"), 12, absl::Seconds(9)));
  b_->transfers.CancelInbound(NodeId("a"), 11);
  EXPECT_EQ(b_->transfers.inbound(), 0);
  EXPECT_TRUE(b_->lost.empty());
  a_->transfers.CancelOutbound(NodeId("b"), 11);
  scheduler_.RunFor(absl::Seconds(5));
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_TRUE(absl::IsCancelled(results_[0]));
  EXPECT_EQ(a_->transfers.outbound(), 0);
  EXPECT_TRUE(b_->steps.empty());
  EXPECT_TRUE(b_->bad.empty());  // chunks that were under way are no offence

  results_.clear();
  Send(2);
  scheduler_.RunFor(absl::Seconds(1));
  a_->transfers.Reset();
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_EQ(b_->lost.size(), 1U);
  EXPECT_EQ(b_->transfers.inbound(), 0);
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_TRUE(absl::IsCancelled(results_[0]));
}

TEST_F(TransfersTest, TopKTellsWhatWasSent) {
  Connect();
  Send(3, {core::Coordinates::kTopK, core::ValueType::kFp32});
  ASSERT_TRUE(
      scheduler_.RunUntil([&] { return Arrived(); }, absl::Seconds(20)));
  ASSERT_EQ(sent_.coordinates.size(), static_cast<size_t>(kN / 10));
  EXPECT_EQ(sent_.coordinates.front(), static_cast<uint32_t>(kN - kN / 10));
  EXPECT_EQ(sent_.values.back(), static_cast<float>(kN - 1));
}

// A parcel of mass costs what is in it, and arrives as it was.
TEST_F(TransfersTest, ASparseParcelCostsItsEntries) {
  Connect();
  std::vector<core::Delivered> delivered;
  Parcels parcels(
      a_->loop, a_->transfers, /*seed=*/1, [](const NodeId&) { return true; },
      [&](const core::Delivered& d) { delivered.push_back(d); });
  parcels.Enter(1);
  for (const int64_t nonzeros : {int64_t{1}, int64_t{1000}, kN}) {
    auto mass = std::make_shared<FlatVector>(kN, 0.0F);
    for (int64_t q = 0; q < nonzeros; ++q) {
      // All sizes, and both signs.
      (*mass)[q * (kN / nonzeros)] =
          (q % 2 == 0 ? 1.0F : -1e-38F) * static_cast<float>(q + 1) / 3;
    }
    core::Give give;
    give.to = NodeId("b");
    give.sequence = delivered.size() + 1;
    give.mass = mass;
    give.nonzeros = nonzeros;
    const int64_t before = b_->inline_bytes + b_->chunk_bytes;
    parcels.Send(give);
    ASSERT_TRUE(scheduler_.RunUntil(
        [&] { return delivered.size() == give.sequence; }, absl::Seconds(60)));
    EXPECT_EQ(b_->values, std::vector<float>(mass->begin(), mass->end()));
    const int64_t bytes = b_->inline_bytes + b_->chunk_bytes - before;
    EXPECT_GE(bytes, 4 * nonzeros);
    EXPECT_LE(bytes, 6 * nonzeros + 64);
  }
}

}  // namespace
}  // namespace dfl::runtime
