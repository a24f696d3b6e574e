// Mass that is sent until it is taken, and the epochs that void it. The takers
// are peers that say what the test tells them to.
#include "daemon/runtime/parcels.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/codec/header.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/lone_node.h"
#include "tests/unit/runtime/raw_peer.h"

namespace dfl::runtime {
namespace {

constexpr int64_t kN = 100;
const NodeId kA("a");
const NodeId kB("b");

class ParcelsTest : public testing::Test {
 protected:
  ParcelsTest() {
    for (RawPeer* peer : {&a_, &b_}) peer->Dial("self:1");
    Pass(absl::Seconds(1));
  }

  void Pass(absl::Duration time) { scheduler_.RunFor(time); }
  // Long enough for messages, and not for another try.
  void PassABit() { Pass(absl::Milliseconds(50)); }

  static core::Give Give(const NodeId& to, uint64_t sequence, float value = 1) {
    core::Give give;
    give.to = to;
    give.sequence = sequence;
    give.round = 3;
    give.mass = std::make_shared<FlatVector>(kN, value);
    give.scalars = {0.5};
    return give;
  }
  static std::vector<ports::TransferBegin> Begins(const RawPeer& peer) {
    return peer.Heard<ports::TransferBegin>();
  }
  static void Take(RawPeer& peer, double taken = 0) {
    const auto begin = Begins(peer).back();
    ASSERT_TRUE(peer.Send(ports::TransferAck{begin.transfer, begin.body_bytes,
                                             true, taken})
                    .ok());
  }
  static void Refuse(RawPeer& peer) {
    ports::TransferCancel cancel;
    cancel.transfer = Begins(peer).back().transfer;
    cancel.reason = ports::RefuseReason::kNotReady;
    ASSERT_TRUE(peer.Send(cancel).ok());
  }
  // What the header of the last parcel says.
  static codec::EncodedHeader Header(const RawPeer& peer) {
    return *codec::ParseHeader(Begins(peer).back().header);
  }

  simports::SimScheduler scheduler_;
  simports::SimNetwork network_{scheduler_, 1, {}};
  LoneNode self_{network_, "self", kN};
  RawPeer a_{network_, "a"};
  RawPeer b_{network_, "b"};
  std::set<NodeId> absent_;
  std::vector<core::Delivered> delivered_;
  std::unique_ptr<Parcels> parcels_ = std::make_unique<Parcels>(
      self_.loop, self_.transfers, /*seed=*/1,
      [this](const NodeId& peer) { return absent_.count(peer) == 0; },
      [this](core::Delivered d) { delivered_.push_back(std::move(d)); });
};

TEST_F(ParcelsTest, OneThatIsTakenIsDeliveredOnce) {
  parcels_->Enter(7);
  parcels_->Send(Give(kA, 2));
  PassABit();
  ASSERT_EQ(Begins(a_).size(), 1U);
  const ports::TransferBegin begin = Begins(a_)[0];
  EXPECT_EQ(begin.kind, ports::TransferKind::kMass);
  EXPECT_EQ(begin.tracker_epoch, 7U);
  EXPECT_EQ(begin.sequence, 2U);
  EXPECT_EQ(begin.step, 3);
  EXPECT_EQ(begin.scalars, std::vector<double>{0.5});
  EXPECT_EQ(parcels_->out(), 1);
  EXPECT_TRUE(delivered_.empty());
  Take(a_, 2.5);
  PassABit();
  ASSERT_EQ(delivered_.size(), 1U);
  EXPECT_EQ(delivered_[0].to, kA);
  EXPECT_EQ(delivered_[0].sequence, 2U);
  EXPECT_EQ(delivered_[0].taken, 2.5);
  EXPECT_EQ(parcels_->out(), 0);
  Pass(absl::Seconds(60));
  EXPECT_EQ(Begins(a_).size(), 1U);
  EXPECT_EQ(delivered_.size(), 1U);
  EXPECT_EQ(parcels_->resent(), 0);
}

TEST_F(ParcelsTest, OneThatIsRefusedIsSentAgainUnchanged) {
  parcels_->Send(Give(kA, 1));
  for (size_t times = 1; times <= 3; ++times) {
    PassABit();
    ASSERT_EQ(Begins(a_).size(), times);
    EXPECT_EQ(Begins(a_).back().sequence, 1U);
    EXPECT_EQ(Begins(a_).back().body, Begins(a_).front().body);
    EXPECT_EQ(parcels_->resent(), static_cast<int64_t>(times) - 1);
    Refuse(a_);
    PassABit();
    EXPECT_EQ(Begins(a_).size(), times);  // not at once
    Pass(absl::Milliseconds(900));
  }
  Take(a_);
  PassABit();
  EXPECT_EQ(delivered_.size(), 1U);
}

// The tries become rare.
TEST_F(ParcelsTest, OneThatIsRefusedAgainAndAgainIsTriedSeldom) {
  parcels_->Enter(1);
  parcels_->Send(Give(kA, 1));
  PassABit();
  size_t refused = 0;
  for (int i = 0; i < 1200; ++i) {
    if (Begins(a_).size() > refused) {
      Refuse(a_);
      ++refused;
    }
    PassABit();
  }
  EXPECT_GT(refused, 12U);
  EXPECT_LT(refused, 30U);  // of 300 tries every 200 ms
}

// What the taker says hurries nothing, but for news, and these only so far.
TEST_F(ParcelsTest, WhatATakerSaysDoesNotMakeItTheFasterForIt) {
  parcels_->Enter(1);
  for (const bool news : {false, true}) {
    SCOPED_TRACE(news);
    parcels_->Send(Give(kA, news ? 2 : 1));
    PassABit();
    const size_t before = Begins(a_).size();
    size_t refused = before - 1;
    for (int i = 0; i < 1200; ++i) {
      if (Begins(a_).size() > refused) {
        Refuse(a_);
        ++refused;
      }
      PassABit();
      parcels_->Resume(kA, news);
    }
    EXPECT_LT(refused - before, news ? 65U : 30U);
    EXPECT_GT(refused - before, news ? 50U : 12U);
  }
}

TEST_F(ParcelsTest, OneForAPeerThatIsAwayWaitsUntilItIsBack) {
  absent_.insert(kA);
  parcels_->Send(Give(kA, 1));
  parcels_->Send(Give(kB, 1));
  Pass(absl::Seconds(5));
  EXPECT_TRUE(Begins(a_).empty());
  EXPECT_EQ(Begins(b_).size(), 1U);
  EXPECT_EQ(parcels_->out(), 2);
  absent_.clear();
  parcels_->Resume(kA, false);
  PassABit();
  EXPECT_EQ(Begins(a_).size(), 1U);
  // It is under way, and so it is not sent twice.
  parcels_->Resume(kA, true);
  parcels_->Resume(NodeId("nobody"), true);
  PassABit();
  EXPECT_EQ(Begins(a_).size(), 1U);
}

TEST_F(ParcelsTest, APeerThatIsAwayAtTheNextTryIsNotSentTo) {
  parcels_->Send(Give(kA, 1));
  PassABit();
  Refuse(a_);
  absent_.insert(kA);
  Pass(absl::Seconds(5));
  EXPECT_EQ(Begins(a_).size(), 1U);
  absent_.clear();
  parcels_->Resume(kA, false);
  PassABit();
  EXPECT_EQ(Begins(a_).size(), 2U);
  EXPECT_EQ(parcels_->resent(), 1);
}

TEST_F(ParcelsTest, ANewEpochVoidsWhatIsOut) {
  parcels_->Send(Give(kA, 1));
  parcels_->Send(Give(kB, 1));
  PassABit();
  Refuse(b_);
  PassABit();
  parcels_->Enter(1);
  EXPECT_EQ(parcels_->epoch(), 1U);
  EXPECT_EQ(parcels_->out(), 0);
  PassABit();
  EXPECT_EQ(a_.Heard<ports::TransferCancel>().size(), 1U);
  Take(a_);
  Pass(absl::Seconds(5));
  EXPECT_TRUE(delivered_.empty());
  EXPECT_EQ(Begins(b_).size(), 1U);  // no second try
  // A parcel of the same number is another one now.
  parcels_->Send(Give(kA, 1, 2));
  PassABit();
  ASSERT_EQ(Begins(a_).size(), 2U);
  EXPECT_EQ(Begins(a_)[1].tracker_epoch, 1U);
  EXPECT_NE(Begins(a_)[1].body, Begins(a_)[0].body);
  Take(a_);
  PassABit();
  EXPECT_EQ(delivered_.size(), 1U);
}

TEST_F(ParcelsTest, WhatIsVoidDoesNotDisturbAParcelOfTheSameNumber) {
  parcels_->Send(Give(kA, 1));
  PassABit();
  parcels_->Enter(1);
  parcels_->Send(Give(kA, 1, 2));
  Pass(absl::Seconds(5));
  EXPECT_EQ(Begins(a_).size(), 2U);
  EXPECT_EQ(parcels_->resent(), 0);
}

TEST_F(ParcelsTest, PartnersAreThoseOfThisEpochThatGaveOrWereGiven) {
  EXPECT_TRUE(parcels_->partners().empty());
  absent_.insert(kA);
  parcels_->Send(Give(kA, 1));
  parcels_->NoteTaken(kB);
  EXPECT_EQ(parcels_->partners(), (std::set<NodeId>{kA, kB}));
  parcels_->Enter(1);
  EXPECT_TRUE(parcels_->partners().empty());
}

TEST_F(ParcelsTest, ASparseParcelCostsWhatIsInIt) {
  core::Give give = Give(kA, 1, 0);
  auto mass = std::make_shared<FlatVector>(kN, 0.0F);
  (*mass)[7] = 1;
  (*mass)[50] = 2;
  give.mass = mass;
  give.nonzeros = 2;
  parcels_->Send(give);
  PassABit();
  EXPECT_EQ(Header(a_).format.coordinates, core::Coordinates::kTopK);
  EXPECT_EQ(Header(a_).s, 2);
  EXPECT_EQ(Header(a_).n, kN);
  // Where half of it is there, or nobody counted, it goes whole.
  give.to = kB;
  give.nonzeros = kN / 2;
  parcels_->Send(give);
  PassABit();
  EXPECT_EQ(Header(b_).format.coordinates, core::Coordinates::kDense);
  EXPECT_EQ(Header(b_).s, kN);
}

TEST_F(ParcelsTest, ALossyParcelIsEncodedFromItsSource) {
  core::Give give = Give(kA, 1);
  give.source = std::make_shared<FlatVector>(kN, 1.25F);
  give.format.values = core::ValueType::kInt8;
  give.seed = 9;
  give.nonzeros = 1;
  parcels_->Send(give);
  PassABit();
  EXPECT_EQ(Header(a_).format, give.format);
  EXPECT_EQ(Header(a_).seed, 9U);
}

TEST_F(ParcelsTest, StepsTravelAsSteps) {
  core::Give give = Give(kA, 1);
  const auto steps = std::make_shared<core::StepCodes>(4, 1, kN);
  give.steps = steps;
  give.mass = std::shared_ptr<const FlatVector>(steps, &steps->values);
  parcels_->Send(give);
  PassABit();
  const core::MessageFormat format = Header(a_).format;
  EXPECT_TRUE(core::IsSteps(format.values));  // coded, where that is shorter
  EXPECT_EQ(format.bits, 4);
  EXPECT_EQ(format.vectors, 1);
  EXPECT_LT(Header(a_).total_bytes(), kN * 4);
}

TEST_F(ParcelsTest, NothingIsSentAgainWhenItIsGone) {
  parcels_->Send(Give(kA, 1));
  PassABit();
  Refuse(a_);
  PassABit();
  parcels_.reset();
  Pass(absl::Seconds(5));
  EXPECT_EQ(Begins(a_).size(), 1U);
}

}  // namespace
}  // namespace dfl::runtime
