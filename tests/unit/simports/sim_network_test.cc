// What a simulated network does beyond the transport contract: time, faults,
// determinism.
#include "daemon/simports/sim_network.h"

#include <memory>
#include <string>
#include <vector>

#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_scheduler.h"
#include "daemon/simports/sim_transport.h"
#include "gtest/gtest.h"
#include "tests/contract/recorder.h"
#include "tests/contract/sample_frames.h"

namespace dfl::simports {
namespace {

using ports::LinkId;
using ports::contract::AskNumber;
using ports::contract::ChunkAt;
using ports::contract::Recorder;

struct Host {
  Host(SimScheduler& scheduler, SimNetwork& network, const std::string& name,
       bool accepts_dials = true)
      : loop(scheduler) {
    SimTransportOptions options;
    options.node = NodeId(name);
    options.address = name;
    options.accepts_dials = accepts_dials;
    transport = std::make_unique<SimTransport>(network, loop, options);
    transport->SetHandler(&recorder);
  }
  SimLoop loop;
  Recorder recorder;
  std::unique_ptr<SimTransport> transport;
};

class SimNetworkTest : public ::testing::Test {
 protected:
  absl::Duration Elapsed() const { return scheduler_.Now() - start_; }
  void Connect() {
    a_.transport->Dial("b");
    ASSERT_TRUE(scheduler_.RunUntil(
        [&] { return a_.recorder.up() == 1 && b_.recorder.up() == 1; },
        absl::Seconds(5)));
    link_a_ = a_.recorder.last();
    link_b_ = b_.recorder.last();
    start_ = scheduler_.Now();
  }
  const Recorder::Link& at_a() { return a_.recorder.links.at(link_a_); }
  const Recorder::Link& at_b() { return b_.recorder.links.at(link_b_); }

  SimScheduler scheduler_;
  absl::Time start_ = scheduler_.Now();
  SimNetwork network_{scheduler_, 1};
  Host a_{scheduler_, network_, "a"};
  Host b_{scheduler_, network_, "b"};
  LinkId link_a_ = 0;
  LinkId link_b_ = 0;
};

TEST_F(SimNetworkTest, ADialTakesTwoRoundTrips) {
  SimPath path;
  path.delay = absl::Milliseconds(30);
  network_.SetPath("a", "b", path);
  path.delay = absl::Milliseconds(10);
  network_.SetPath("b", "a", path);
  a_.transport->Dial("b");
  ASSERT_TRUE(scheduler_.RunUntil([&] { return a_.recorder.up() == 1; },
                                  absl::Seconds(5)));
  EXPECT_EQ(Elapsed(), absl::Milliseconds(80));
}

TEST_F(SimNetworkTest, AFrameTakesItsSizeOverTheRatePlusTheDelay) {
  SimPath path;
  path.delay = absl::Milliseconds(5);
  path.rate = 1e6;
  network_.SetPathBothWays("a", "b", path);
  Connect();
  const ports::Frame frame = ChunkAt(0, 500'000);
  const int64_t size = ports::EncodedSize(frame);
  ASSERT_TRUE(a_.transport->Send(link_a_, frame).ok());
  ASSERT_TRUE(a_.transport->Send(link_a_, frame).ok());
  scheduler_.RunUntil([&] { return at_b().chunks.size() == 1; },
                      absl::Seconds(5));
  EXPECT_EQ(Elapsed(), absl::Milliseconds(5) + absl::Microseconds(size));
  scheduler_.RunUntil([&] { return at_b().chunks.size() == 2; },
                      absl::Seconds(5));
  EXPECT_EQ(Elapsed(), absl::Milliseconds(5) + absl::Microseconds(2 * size));
  EXPECT_EQ(network_.delivered("a", "b").bytes, 2 * size);
  EXPECT_EQ(network_.delivered("a", "b").frames, 2);
  EXPECT_EQ(network_.delivered("b", "a").frames, 0);
  EXPECT_EQ(network_.delivered().bytes, 2 * size);
  EXPECT_EQ(network_.sent().bytes, 2 * size);
}

TEST_F(SimNetworkTest, WhatIsLostOnTheWayWasSent) {
  SimPath path;
  path.delay = absl::Milliseconds(5);
  network_.SetPathBothWays("a", "b", path);
  Connect();
  const ports::Frame frame = ChunkAt(0, 1000);
  ASSERT_TRUE(a_.transport->Send(link_a_, frame).ok());
  scheduler_.RunFor(absl::Milliseconds(1));
  network_.ResetLinks("a", "b");
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_EQ(network_.sent().frames, 1);
  EXPECT_EQ(network_.sent().bytes, ports::EncodedSize(frame));
  EXPECT_EQ(network_.delivered().frames, 0);
}

TEST_F(SimNetworkTest, ControlFramesDoNotWaitBehindQueuedChunks) {
  SimPath path;
  path.rate = 1e6;
  network_.SetPathBothWays("a", "b", path);
  Connect();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(a_.transport->Send(link_a_, ChunkAt(i, 1'000'000)).ok());
  }
  ASSERT_TRUE(a_.transport->Send(link_a_, AskNumber(1)).ok());
  scheduler_.RunUntil([&] { return at_b().control.size() == 1; },
                      absl::Seconds(5));
  EXPECT_EQ(at_b().chunks.size(), 1u);  // the one that was leaving already
}

TEST_F(SimNetworkTest, ACutLosesWhatIsUnderWayAndRefusesDialsUntilHealed) {
  Connect();
  ASSERT_TRUE(a_.transport->Send(link_a_, AskNumber(1)).ok());
  network_.Cut("a", "b");
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_EQ(at_a().downs, 1);
  EXPECT_EQ(at_b().downs, 1);
  EXPECT_TRUE(at_b().control.empty());
  EXPECT_EQ(at_a().reason.code(), absl::StatusCode::kUnavailable);

  a_.transport->Dial("b");
  scheduler_.RunFor(absl::Seconds(1));
  ASSERT_EQ(a_.recorder.failures.size(), 1u);
  EXPECT_EQ(a_.recorder.failures[0].second.code(),
            absl::StatusCode::kUnavailable);

  network_.Heal("b", "a");
  Connect();
  EXPECT_EQ(a_.recorder.up(), 1);
}

TEST_F(SimNetworkTest, ABlackHoleIsSilentUntilTheKeepalive) {
  Connect();
  network_.BlackHole("a", "b");
  ASSERT_TRUE(a_.transport->Send(link_a_, AskNumber(1)).ok());
  scheduler_.RunFor(absl::Seconds(29));
  EXPECT_EQ(at_a().downs, 0);
  EXPECT_TRUE(at_b().control.empty());
  scheduler_.RunFor(absl::Seconds(2));
  EXPECT_EQ(at_a().downs, 1);
  EXPECT_EQ(at_b().downs, 1);
  EXPECT_EQ(at_a().reason.code(), absl::StatusCode::kUnavailable);
}

TEST_F(SimNetworkTest, ABlackHoleHealedInTimeLosesNothing) {
  Connect();
  network_.BlackHole("a", "b");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(a_.transport->Send(link_a_, AskNumber(i)).ok());
  }
  scheduler_.RunFor(absl::Seconds(20));
  network_.Heal("a", "b");
  scheduler_.RunFor(absl::Seconds(60));
  EXPECT_EQ(at_b().control.size(), 5u);
  EXPECT_EQ(at_a().downs, 0);
}

TEST_F(SimNetworkTest, AOneWayBlackHoleLetsTheOtherDirectionThrough) {
  Connect();
  network_.BlackHoleOneWay("a", "b");
  ASSERT_TRUE(a_.transport->Send(link_a_, AskNumber(1)).ok());
  ASSERT_TRUE(b_.transport->Send(link_b_, AskNumber(2)).ok());
  scheduler_.RunFor(absl::Seconds(5));
  EXPECT_TRUE(at_b().control.empty());
  EXPECT_EQ(at_a().control.size(), 1u);
}

TEST_F(SimNetworkTest, ADialIntoABlackHoleEndsAtTheDialTimeout) {
  network_.BlackHole("a", "b");
  a_.transport->Dial("b");
  ASSERT_TRUE(scheduler_.RunUntil([&] { return !a_.recorder.failures.empty(); },
                                  absl::Seconds(60)));
  EXPECT_EQ(Elapsed(), absl::Seconds(5));
  EXPECT_EQ(a_.recorder.failures[0].second.code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(SimNetworkTest, APeerThatLosesPowerBehindABlackHoleIsNoticedLate) {
  Connect();
  network_.BlackHole("a", "b");
  b_.loop.Stop();
  b_.transport.reset();
  scheduler_.RunFor(absl::Seconds(10));
  EXPECT_EQ(at_a().downs, 0);
  scheduler_.RunFor(absl::Seconds(25));
  EXPECT_EQ(at_a().downs, 1);
}

TEST_F(SimNetworkTest, ACrashDuringADialFailsIt) {
  SimPath path;
  path.delay = absl::Milliseconds(100);
  network_.SetPathBothWays("a", "b", path);
  a_.transport->Dial("b");
  scheduler_.RunFor(absl::Milliseconds(350));  // b's end is up, a's is not
  EXPECT_EQ(b_.recorder.up(), 1);
  b_.loop.Stop();
  b_.transport.reset();
  scheduler_.RunFor(absl::Seconds(1));
  // Either it failed, or the link came up and went down.
  EXPECT_EQ(a_.recorder.up(), 0);
  EXPECT_EQ(a_.recorder.failures.size() + a_.recorder.order.size(), 1u);
}

TEST_F(SimNetworkTest, AHostThatOnlyDialsOutCannotBeDialled) {
  Host c(scheduler_, network_, "c", /*accepts_dials=*/false);
  a_.transport->Dial("c");
  scheduler_.RunFor(absl::Seconds(1));
  EXPECT_EQ(a_.recorder.failures.size(), 1u);
  c.transport->Dial("b");
  scheduler_.RunFor(absl::Seconds(1));
  ASSERT_EQ(c.recorder.up(), 1);
  EXPECT_EQ(b_.recorder.links.at(b_.recorder.last()).peer.advertised, "");
}

// Chunks and asks at random over links that jitter and break.
uint64_t ChaosDigest(uint64_t seed, int64_t* resets) {
  SimScheduler scheduler;
  SimNetworkOptions options;
  options.path.jitter = absl::Milliseconds(3);
  options.path.rate = 10e6;
  options.path.reset_probability = 0.01;
  SimNetwork network(scheduler, seed, options);
  std::vector<std::unique_ptr<Host>> hosts;
  for (const char* name : {"a", "b", "c", "d"}) {
    hosts.push_back(std::make_unique<Host>(scheduler, network, name));
  }
  Rng rng(seed);
  for (int i = 0; i < 3000; ++i) {
    Host& host = *hosts[rng.Below(hosts.size())];
    const uint64_t draw = rng.Below(10);
    if (host.recorder.up() < 3 && draw < 3) {
      host.transport->Dial(
          hosts[rng.Below(hosts.size())]->transport->options().address);
    } else if (host.recorder.last() != 0) {
      const absl::Status status =
          draw < 6 ? host.transport->Send(host.recorder.last(), AskNumber(i))
                   : host.transport->Send(host.recorder.last(),
                                          ChunkAt(i, rng.Below(100'000)));
      EXPECT_TRUE(status.ok() || absl::IsNotFound(status) ||
                  absl::IsResourceExhausted(status))
          << status;
    }
    scheduler.RunFor(absl::Milliseconds(rng.Below(5)));
  }
  scheduler.RunUntilIdle();
  for (const auto& host : hosts) {
    for (const auto& [id, link] : host->recorder.links) *resets += link.downs;
  }
  return scheduler.trace().value();
}

TEST(SimNetwork, ASeedReplaysBitForBitAndAnotherDoesNot) {
  int64_t resets = 0;
  const uint64_t digest = ChaosDigest(11, &resets);
  EXPECT_GT(resets, 20);
  EXPECT_EQ(digest, ChaosDigest(11, &resets));
  EXPECT_NE(digest, ChaosDigest(12, &resets));
}

}  // namespace
}  // namespace dfl::simports
