// Stream against a scripted call: one write and one read in flight, bounds,
// and an end that comes exactly once.
#include "daemon/exchange/stream.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/contract/sample_frames.h"
#include "tests/unit/exchange/fake_call.h"

namespace dfl::exchange {
namespace {

using ports::contract::AskNumber;
using ports::contract::ChunkAt;
using ports::contract::Describe;

class StreamTest : public ::testing::Test {
 protected:
  StreamTest()
      : budget_(std::make_shared<SendBudget>(2 << 20)),
        stream_(1, StreamKind::kBulk, &call_, [this] { ++wakes_; }) {}

  void Arrive(ports::Frame frame) {
    ASSERT_TRUE(call_.reading);
    call_.reading = false;
    const int64_t bytes = ports::EncodedSize(frame);
    stream_.ReadDone(std::move(frame), bytes);
  }
  void Written() {
    ASSERT_TRUE(call_.writing);
    call_.writing = false;
    stream_.WriteDone(true);
  }

  FakeCall call_;
  int wakes_ = 0;
  std::shared_ptr<SendBudget> budget_;
  Stream stream_;
};

TEST_F(StreamTest, WritesOneAfterTheOtherInOrder) {
  stream_.OpenUp(budget_);
  for (int i = 0; i < 3; ++i) stream_.SendFrame(AskNumber(i), 10);
  EXPECT_EQ(call_.written.size(), 1u);
  Written();
  Written();
  Written();
  ASSERT_EQ(call_.written.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Describe(std::get<ports::Frame>(call_.written[i])),
              Describe(AskNumber(i)));
  }
  EXPECT_FALSE(call_.writing);
}

TEST_F(StreamTest, ReadsNoFrameBeforeTheLinkIsUp) {
  stream_.ReadHello();
  call_.reading = false;
  stream_.ReadDone(Greeting(), 20);
  EXPECT_FALSE(call_.reading);
  stream_.OpenUp(budget_);
  EXPECT_TRUE(call_.reading);
}

TEST_F(StreamTest, StopsReadingWhileTheLoopIsBehind) {
  stream_.OpenUp(budget_);
  int arrived = 0;
  while (call_.reading) {
    Arrive(ChunkAt(arrived++, 1 << 20));
    ASSERT_LT(arrived, 100);
  }
  EXPECT_EQ(arrived, 4);
  EXPECT_EQ(wakes_, 1);  // one wake for them all
  const Stream::Batch batch = stream_.Take();
  EXPECT_EQ(batch.events.size(), 4u);
  EXPECT_FALSE(call_.reading);  // taken is not yet consumed
  stream_.Consumed(batch);
  EXPECT_TRUE(call_.reading);
  Arrive(ChunkAt(9, 10));
  EXPECT_EQ(wakes_, 2);
}

TEST_F(StreamTest, TheBudgetIsBoundedAndTellsWhenThereIsRoom) {
  EXPECT_TRUE(budget_->Reserve(2 << 20, StreamKind::kBulk));
  EXPECT_FALSE(budget_->Reserve(1, StreamKind::kBulk));
  EXPECT_TRUE(budget_->Reserve(2 << 20, StreamKind::kControl));
  EXPECT_FALSE(budget_->Reserve(1, StreamKind::kControl));
  EXPECT_FALSE(budget_->Release(2 << 20));
  EXPECT_FALSE(budget_->Release(1 << 20));  // half is not below half
  EXPECT_TRUE(budget_->Release(1));
  EXPECT_FALSE(budget_->Release(1));  // once
}

TEST_F(StreamTest, AnEventSaysThatThereIsRoom) {
  stream_.OpenUp(budget_);
  ASSERT_TRUE(budget_->Reserve(2 << 20, StreamKind::kBulk));
  stream_.SendFrame(ChunkAt(0, 10), 2 << 20);
  ASSERT_FALSE(budget_->Reserve(1, StreamKind::kBulk));
  Written();
  const Stream::Batch batch = stream_.Take();
  ASSERT_EQ(batch.events.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Stream::Writable>(batch.events[0]));
}

TEST_F(StreamTest, StopEndsOnceWithTheReasonAndNothingMoreIsHeard) {
  stream_.OpenUp(budget_);
  Arrive(AskNumber(1));
  stream_.Stop(absl::UnavailableError("enough"));
  stream_.Stop(absl::UnavailableError("again"));
  EXPECT_EQ(call_.ends, 1);
  EXPECT_EQ(call_.status.message(), "enough");
  EXPECT_EQ(call_.ending, Ending::kStatus);
  stream_.ReadEnded(true, absl::CancelledError(""));
  stream_.CallEnded(absl::CancelledError(""));
  EXPECT_TRUE(stream_.Take().events.empty());
  stream_.SendFrame(AskNumber(1), 10);
  EXPECT_TRUE(call_.written.empty());
  EXPECT_EQ(call_.ends, 1);
}

TEST_F(StreamTest, StopDuringAWriteCancels) {
  stream_.OpenUp(budget_);
  stream_.SendFrame(AskNumber(1), 10);
  stream_.Stop(absl::UnavailableError("enough"));
  EXPECT_EQ(call_.ending, Ending::kCancel);
}

TEST_F(StreamTest, TheEndOfReadingComesAfterWhatWasRead) {
  stream_.OpenUp(budget_);
  Arrive(AskNumber(1));
  call_.reading = false;
  stream_.ReadEnded(true, absl::UnavailableError("gone"));
  EXPECT_EQ(call_.ends, 1);
  EXPECT_EQ(call_.ending, Ending::kDone);
  const Stream::Batch batch = stream_.Take();
  ASSERT_EQ(batch.events.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<ports::Frame>(batch.events[0]));
  EXPECT_EQ(std::get<Stream::Closed>(batch.events[1]).reason.message(), "gone");
  stream_.Consumed(batch);
  EXPECT_FALSE(call_.reading);
}

TEST_F(StreamTest, WhatBreaksTheProtocolEndsTheCallWithTheReason) {
  stream_.OpenUp(budget_);
  call_.reading = false;
  stream_.ReadRefused(absl::InvalidArgumentError("step is -1"));
  EXPECT_EQ(call_.ends, 1);
  EXPECT_EQ(call_.ending, Ending::kStatus);
  EXPECT_EQ(call_.status.message(), "step is -1");
  const Stream::Batch batch = stream_.Take();
  ASSERT_EQ(batch.events.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Stream::Closed>(batch.events[0]));
}

}  // namespace
}  // namespace dfl::exchange
