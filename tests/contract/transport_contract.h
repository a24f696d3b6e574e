// What every ports::Transport must do, as tests: see daemon/ports/transport.h.
//
// A fixture makes two nodes and runs them, in virtual time or with threads:
//
//   class MyNodes : public TransportNodes { ... };
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyTransport, TransportContract, MyNodes);
#ifndef DFL_TESTS_CONTRACT_TRANSPORT_CONTRACT_H_
#define DFL_TESTS_CONTRACT_TRANSPORT_CONTRACT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/transport.h"
#include "gtest/gtest.h"
#include "tests/contract/recorder.h"
#include "tests/contract/sample_frames.h"

namespace dfl::ports::contract {

// Two nodes, 0 "alpha" and 1 "beta", each with a transport, a loop and a
// Recorder. Incarnations start at 100 and 200 and grow by 1 with each Restart.
class TransportNodes {
 public:
  virtual ~TransportNodes() = default;

  // Why it cannot run on this machine; "" when it can.
  virtual std::string missing() { return ""; }

  virtual void Start(int64_t max_queued_bytes) = 0;

  // Where `node` can be dialled, and an address where nobody listens.
  virtual std::string address(int node) = 0;
  virtual std::string dead_address() = 0;

  // Runs `f` on the node's loop and returns when it ran.
  virtual void Run(int node,
                   const std::function<void(Transport&, Recorder&)>& f) = 0;
  // Waits until `done`, asked on the node's loop, holds; false after 10 s.
  virtual bool Wait(int node,
                    const std::function<bool(const Recorder&)>& done) = 0;
  // Lets everything that is under way arrive; neither node is stalled.
  virtual void Settle() = 0;

  // From here on `node` takes nothing in, until Resume.
  virtual void Stall(int node) = 0;
  virtual void Resume(int node) = 0;

  // The process ends without a word, and starts again with a new Recorder.
  virtual void Kill(int node) = 0;
  virtual void Restart(int node) = 0;
};

template <typename Nodes>
class TransportContract : public ::testing::Test {
 protected:
  static constexpr int kAlpha = 0;
  static constexpr int kBeta = 1;

  void SetUp() override {
    if (!nodes_.missing().empty()) GTEST_SKIP() << nodes_.missing();
  }

  void Start(int64_t max_queued_bytes = 4 << 20) {
    nodes_.Start(max_queued_bytes);
  }

  absl::Status Send(int node, LinkId link, Frame frame) {
    absl::Status status;
    nodes_.Run(node, [&](Transport& transport, Recorder& recorder) {
      recorder.in_call = true;
      status = transport.Send(link, std::move(frame));
      recorder.in_call = false;
    });
    return status;
  }
  void Dial(int node, const std::string& address) {
    nodes_.Run(node, [&](Transport& transport, Recorder& recorder) {
      recorder.in_call = true;
      transport.Dial(address);
      recorder.in_call = false;
    });
  }
  void Close(int node, LinkId link) {
    nodes_.Run(node, [&](Transport& transport, Recorder& recorder) {
      recorder.in_call = true;
      transport.Close(link, absl::CancelledError("the test closes it"));
      recorder.in_call = false;
      recorder.closed.insert(link);
    });
  }

  // Alpha dials beta; the two ends' ids.
  std::pair<LinkId, LinkId> Connect() {
    const size_t before = Count(kAlpha);
    const size_t before_beta = Count(kBeta);
    Dial(kAlpha, nodes_.address(kBeta));
    EXPECT_TRUE(nodes_.Wait(
        kAlpha, [&](const Recorder& r) { return r.order.size() > before; }));
    EXPECT_TRUE(nodes_.Wait(kBeta, [&](const Recorder& r) {
      return r.order.size() > before_beta;
    }));
    return {Last(kAlpha), Last(kBeta)};
  }
  size_t Count(int node) {
    size_t count = 0;
    nodes_.Run(node, [&](Transport&, Recorder& r) { count = r.order.size(); });
    return count;
  }
  LinkId Last(int node) {
    LinkId last = 0;
    nodes_.Run(node, [&](Transport&, Recorder& r) { last = r.last(); });
    return last;
  }
  bool WaitDown(int node, LinkId link) {
    return nodes_.Wait(node, [link](const Recorder& r) {
      return r.links.at(link).downs == 1;
    });
  }
  Recorder::Link Look(int node, LinkId link) {
    Recorder::Link copy;
    nodes_.Run(node, [&](Transport&, Recorder& r) { copy = r.links[link]; });
    return copy;
  }

  Nodes nodes_;
};

TYPED_TEST_SUITE_P(TransportContract);

TYPED_TEST_P(TransportContract, DialBringsALinkUpAtBothEndsWithIdentities) {
  this->Start();
  const auto [a, b] = this->Connect();
  const Recorder::Link at_alpha = this->Look(0, a);
  EXPECT_EQ(at_alpha.peer.node.name(), "beta");
  EXPECT_EQ(at_alpha.peer.incarnation, 200u);
  EXPECT_EQ(at_alpha.peer.advertised, this->nodes_.address(1));
  EXPECT_EQ(at_alpha.dialled, this->nodes_.address(1));
  const Recorder::Link at_beta = this->Look(1, b);
  EXPECT_EQ(at_beta.peer.node.name(), "alpha");
  EXPECT_EQ(at_beta.peer.incarnation, 100u);
  EXPECT_EQ(at_beta.peer.advertised, this->nodes_.address(0));
  EXPECT_EQ(at_beta.dialled, "");
}

TYPED_TEST_P(TransportContract, EveryKindOfFrameArrivesAsItWasSent) {
  this->Start();
  const auto [a, b] = this->Connect();
  std::vector<std::string> sent[2];
  for (const Frame& frame : SampleFrames()) {
    sent[std::holds_alternative<Chunk>(frame)].push_back(Describe(frame));
    ASSERT_TRUE(this->Send(0, a, frame).ok()) << Describe(frame);
    ASSERT_TRUE(this->Send(1, b, frame).ok()) << Describe(frame);
  }
  for (const auto& [node, link] :
       {std::make_pair(0, a), std::make_pair(1, b)}) {
    ASSERT_TRUE(this->nodes_.Wait(node, [&, l = link](const Recorder& r) {
      return r.links.at(l).control.size() == sent[0].size() &&
             r.links.at(l).chunks.size() == sent[1].size();
    }));
    const Recorder::Link got = this->Look(node, link);
    for (size_t i = 0; i < sent[0].size(); ++i) {
      EXPECT_EQ(Describe(got.control[i]), sent[0][i]);
    }
    for (size_t i = 0; i < sent[1].size(); ++i) {
      EXPECT_EQ(Describe(got.chunks[i]), sent[1][i]);
    }
  }
}

TYPED_TEST_P(TransportContract, FramesOfAStreamArriveInOrderInBothDirections) {
  this->Start();
  const auto ends = this->Connect();
  const LinkId link[2] = {ends.first, ends.second};
  constexpr int kFrames = 200;
  for (int i = 0; i < kFrames; ++i) {
    for (const int node : {0, 1}) {
      ASSERT_TRUE(this->Send(node, link[node], AskNumber(i)).ok());
      ASSERT_TRUE(this->Send(node, link[node], ChunkAt(i, 1000)).ok());
    }
  }
  for (const int node : {0, 1}) {
    ASSERT_TRUE(this->nodes_.Wait(node, [&](const Recorder& r) {
      const Recorder::Link& l = r.links.at(link[node]);
      return l.control.size() == kFrames && l.chunks.size() == kFrames;
    }));
    const Recorder::Link got = this->Look(node, link[node]);
    for (int i = 0; i < kFrames; ++i) {
      EXPECT_EQ(Describe(got.control[i]), Describe(AskNumber(i)));
      EXPECT_EQ(Describe(got.chunks[i]), Describe(ChunkAt(i, 1000)));
    }
  }
}

TYPED_TEST_P(TransportContract, LinkIdsAreNeverUsedAgain) {
  this->Start();
  for (int i = 0; i < 5; ++i) {  // Recorder::OnLinkUp checks it
    const auto [a, b] = this->Connect();
    this->Close(i % 2, i % 2 == 0 ? a : b);
    ASSERT_TRUE(this->WaitDown(0, a));
    ASSERT_TRUE(this->WaitDown(1, b));
  }
  EXPECT_EQ(this->Count(0), 5u);
  EXPECT_EQ(this->Count(1), 5u);
}

TYPED_TEST_P(TransportContract, CloseEndsTheLinkOnceAtBothEnds) {
  this->Start();
  const auto [a, b] = this->Connect();
  this->Close(0, a);
  this->Close(0, a);
  ASSERT_TRUE(this->WaitDown(0, a));
  ASSERT_TRUE(this->WaitDown(1, b));
  this->Close(0, a);
  this->Close(1, b);
  this->Close(1, 987654321);
  this->nodes_.Settle();
  const Recorder::Link at_alpha = this->Look(0, a);
  EXPECT_EQ(at_alpha.downs, 1);
  EXPECT_EQ(at_alpha.reason.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(
      absl::StrContains(at_alpha.reason.message(), "the test closes it"))
      << at_alpha.reason;
  const Recorder::Link at_beta = this->Look(1, b);
  EXPECT_EQ(at_beta.downs, 1);
  EXPECT_FALSE(at_beta.reason.ok());
  EXPECT_EQ(this->Send(0, a, AskNumber(1)).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(this->Send(1, b, AskNumber(1)).code(), absl::StatusCode::kNotFound);
}

TYPED_TEST_P(TransportContract, AfterCloseNothingMoreComesButOnLinkDown) {
  this->Start();
  const auto [a, b] = this->Connect();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(this->Send(1, b, AskNumber(i)).ok());
    ASSERT_TRUE(this->Send(1, b, ChunkAt(i, 10'000)).ok());
  }
  this->Close(0, a);  // the Recorder checks that no frame follows
  ASSERT_TRUE(this->WaitDown(0, a));
  ASSERT_TRUE(this->WaitDown(1, b));
  this->nodes_.Settle();
}

TYPED_TEST_P(TransportContract, WhatArrivesOfAClosedLinkIsAPrefix) {
  this->Start();
  const auto [a, b] = this->Connect();
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(this->Send(0, a, ChunkAt(i, 100'000)).ok());
  }
  this->Close(0, a);
  ASSERT_TRUE(this->WaitDown(1, b));
  const Recorder::Link got = this->Look(1, b);
  for (size_t i = 0; i < got.chunks.size(); ++i) {
    EXPECT_EQ(Describe(got.chunks[i]), Describe(ChunkAt(i, 100'000)));
  }
}

TYPED_TEST_P(TransportContract, FramesOverTheirBoundAreRefused) {
  this->Start();
  const auto [a, b] = this->Connect();
  EXPECT_EQ(this->Send(0, a, ChunkAt(0, kMaxChunkBytes + 1)).code(),
            absl::StatusCode::kInvalidArgument);
  TransferBegin begin;
  begin.header.assign(kMaxControlFrameBytes, 'h');
  EXPECT_EQ(this->Send(0, a, begin).code(), absl::StatusCode::kInvalidArgument);
  // The largest allowed ones pass.
  begin.header.resize(kMaxControlFrameBytes - 20);
  ASSERT_TRUE(this->Send(0, a, begin).ok());
  ASSERT_TRUE(this->Send(0, a, ChunkAt(0, kMaxChunkBytes)).ok());
  ASSERT_TRUE(this->nodes_.Wait(1, [link = b](const Recorder& r) {
    return r.links.at(link).control.size() == 1 &&
           r.links.at(link).chunks.size() == 1;
  }));
  EXPECT_EQ(this->Look(0, a).downs, 0);
}

TYPED_TEST_P(TransportContract, FramesThatNoPeerWouldTakeAreRefused) {
  this->Start();
  const LinkId a = this->Connect().first;
  AskFrame ask;
  ask.step = -1;
  EXPECT_EQ(this->Send(0, a, ask).code(), absl::StatusCode::kInvalidArgument);
  StateFrame state;
  state.run_id = "caf\xc3\xa9";
  EXPECT_EQ(this->Send(0, a, state).code(), absl::StatusCode::kInvalidArgument);
  Chunk chunk;
  chunk.offset = -5;
  EXPECT_EQ(this->Send(0, a, chunk).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(this->Look(0, a).downs, 0);
}

TYPED_TEST_P(TransportContract, DialOfADeadAddressFailsAndNamesIt) {
  this->Start();
  const std::string address = this->nodes_.dead_address();
  this->Dial(0, address);
  ASSERT_TRUE(this->nodes_.Wait(
      0, [](const Recorder& r) { return !r.failures.empty(); }));
  this->nodes_.Settle();
  this->nodes_.Run(0, [&](Transport&, Recorder& r) {
    ASSERT_EQ(r.failures.size(), 1u);
    EXPECT_EQ(r.failures[0].first, address);
    EXPECT_EQ(r.failures[0].second.code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(absl::StrContains(r.failures[0].second.message(), address))
        << r.failures[0].second;
    EXPECT_TRUE(r.order.empty());
  });
}

TYPED_TEST_P(TransportContract, DialOfOneselfIsRefused) {
  this->Start();
  this->Dial(0, this->nodes_.address(0));
  ASSERT_TRUE(this->nodes_.Wait(
      0, [](const Recorder& r) { return !r.failures.empty(); }));
  this->nodes_.Settle();
  this->nodes_.Run(0, [&](Transport&, Recorder& r) {
    ASSERT_EQ(r.failures.size(), 1u);
    EXPECT_EQ(r.failures[0].second.code(),
              absl::StatusCode::kFailedPrecondition)
        << r.failures[0].second;
    EXPECT_EQ(r.up(), 0);
  });
}

TYPED_TEST_P(TransportContract, SendToAnUnknownLinkIsNotFound) {
  this->Start();
  EXPECT_EQ(this->Send(0, 4711, AskNumber(1)).code(),
            absl::StatusCode::kNotFound);
}

TYPED_TEST_P(TransportContract, AFullQueueRefusesAndSaysWhenItHasRoom) {
  constexpr int64_t kQueue = 2 << 20;
  this->Start(kQueue);
  const auto [a, b] = this->Connect();
  this->nodes_.Stall(1);
  absl::Status status;
  int64_t sent = 0;
  for (; sent < 4000; ++sent) {
    status = this->Send(0, a, ChunkAt(sent, 256 << 10));
    if (!status.ok()) break;
  }
  ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(this->Look(0, a).downs, 0);
  // Control frames go on, up to twice the bound. Sockets and windows take some
  // of them first.
  int64_t asked = 0;
  TransferBegin begin;
  begin.header.assign(60'000, 'h');
  for (status = absl::OkStatus(); asked < 4000; ++asked) {
    begin.transfer = asked;
    status = this->Send(0, a, begin);
    if (!status.ok()) break;
  }
  EXPECT_GE(asked, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;

  this->nodes_.Resume(1);
  ASSERT_TRUE(this->nodes_.Wait(0, [link = a](const Recorder& r) {
    return r.links.at(link).writable >= 1;
  }));
  // What was accepted arrives, and nothing else.
  ASSERT_TRUE(this->nodes_.Wait(1, [&, link = b](const Recorder& r) {
    return r.links.at(link).chunks.size() >= static_cast<size_t>(sent) &&
           r.links.at(link).control.size() >= static_cast<size_t>(asked);
  }));
  this->nodes_.Settle();
  const Recorder::Link got = this->Look(1, b);
  ASSERT_EQ(got.chunks.size(), static_cast<size_t>(sent));
  EXPECT_EQ(got.control.size(), static_cast<size_t>(asked));
  EXPECT_TRUE(this->Send(0, a, ChunkAt(0, 256 << 10)).ok());
}

TYPED_TEST_P(TransportContract, TwoLinksToOnePeerMayExist) {
  this->Start();
  const auto [a1, b1] = this->Connect();
  this->Dial(1, this->nodes_.address(0));
  ASSERT_TRUE(this->nodes_.Wait(
      0, [](const Recorder& r) { return r.order.size() == 2; }));
  ASSERT_TRUE(this->nodes_.Wait(
      1, [](const Recorder& r) { return r.order.size() == 2; }));
  const LinkId a2 = this->Last(0);
  const LinkId b2 = this->Last(1);
  ASSERT_TRUE(this->Send(0, a1, AskNumber(1)).ok());
  ASSERT_TRUE(this->Send(0, a2, AskNumber(2)).ok());
  for (const auto& [link, number] :
       {std::make_pair(b1, 1), std::make_pair(b2, 2)}) {
    ASSERT_TRUE(this->nodes_.Wait(1, [l = link](const Recorder& r) {
      return r.links.at(l).control.size() == 1;
    }));
    EXPECT_EQ(Describe(this->Look(1, link).control[0]),
              Describe(AskNumber(number)));
  }
  // Closing one leaves the other.
  this->Close(0, a1);
  ASSERT_TRUE(this->WaitDown(1, b1));
  ASSERT_TRUE(this->Send(1, b2, AskNumber(3)).ok());
  EXPECT_TRUE(this->nodes_.Wait(0, [a2](const Recorder& r) {
    return r.links.at(a2).control.size() == 1;
  }));
}

TYPED_TEST_P(TransportContract, AKilledPeerIsNoticedAndMayComeBack) {
  this->Start();
  const auto [a, b] = this->Connect();
  ASSERT_TRUE(this->Send(0, a, ChunkAt(0, 1000)).ok());
  this->nodes_.Kill(1);
  ASSERT_TRUE(this->WaitDown(0, a));
  EXPECT_EQ(this->Look(0, a).reason.code(), absl::StatusCode::kUnavailable)
      << this->Look(0, a).reason;

  this->nodes_.Restart(1);
  const LinkId again = this->Connect().first;
  EXPECT_NE(again, a);
  EXPECT_EQ(this->Look(0, again).peer.incarnation, 201u);
  EXPECT_EQ(this->Look(0, a).downs, 1);
}

REGISTER_TYPED_TEST_SUITE_P(
    TransportContract, DialBringsALinkUpAtBothEndsWithIdentities,
    EveryKindOfFrameArrivesAsItWasSent,
    FramesOfAStreamArriveInOrderInBothDirections, LinkIdsAreNeverUsedAgain,
    CloseEndsTheLinkOnceAtBothEnds, AfterCloseNothingMoreComesButOnLinkDown,
    WhatArrivesOfAClosedLinkIsAPrefix, FramesOverTheirBoundAreRefused,
    FramesThatNoPeerWouldTakeAreRefused, DialOfADeadAddressFailsAndNamesIt,
    DialOfOneselfIsRefused, SendToAnUnknownLinkIsNotFound,
    AFullQueueRefusesAndSaysWhenItHasRoom, TwoLinksToOnePeerMayExist,
    AKilledPeerIsNoticedAndMayComeBack);

}  // namespace dfl::ports::contract

#endif  // DFL_TESTS_CONTRACT_TRANSPORT_CONTRACT_H_
