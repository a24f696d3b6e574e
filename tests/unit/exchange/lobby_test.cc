#include "daemon/exchange/lobby.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/simports/sim_loop.h"
#include "gtest/gtest.h"
#include "tests/unit/exchange/fake_call.h"

namespace dfl::exchange {
namespace {

ports::PeerIdentity Peer(const std::string& name, uint64_t incarnation = 7) {
  return {NodeId(name), incarnation, ""};
}

class LobbyTest : public ::testing::Test {
 protected:
  // Opens a stream on the connection `remote`.
  StreamId Open(StreamKind kind, const std::string& remote = "ipv4:1") {
    calls_.push_back(std::make_unique<FakeCall>());
    const StreamId id = calls_.size();
    lobby_.Enter(std::make_shared<Stream>(id, kind, calls_.back().get(), [] {}),
                 remote);
    return id;
  }
  const FakeCall& call(StreamId id) const { return *calls_[id - 1]; }

  simports::SimScheduler scheduler_;
  simports::SimLoop loop_{scheduler_};
  std::vector<std::unique_ptr<FakeCall>> calls_;
  Lobby lobby_{loop_, absl::Seconds(5)};
};

TEST_F(LobbyTest, TwoStreamsOfOneHelloLeaveAsAPair) {
  const StreamId bulk = Open(StreamKind::kBulk);
  const StreamId control = Open(StreamKind::kControl);
  EXPECT_FALSE(lobby_.Greet(bulk, Peer("box"), 9).has_value());
  const std::optional<Lobby::Pair> pair = lobby_.Greet(control, Peer("box"), 9);
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pair->streams[0]->id(), control);
  EXPECT_EQ(pair->streams[1]->id(), bulk);
  EXPECT_EQ(pair->peer.node.name(), "box");
  EXPECT_EQ(pair->nonce, 9u);
  EXPECT_EQ(lobby_.Find(bulk), nullptr);
  EXPECT_EQ(lobby_.Find(control), nullptr);
  scheduler_.RunFor(absl::Seconds(60));  // nor does a timer end them
  EXPECT_EQ(call(bulk).ends + call(control).ends, 0);
}

TEST_F(LobbyTest, StreamsThatDifferDoNotBelongTogether) {
  lobby_.Greet(Open(StreamKind::kBulk), Peer("box"), 9);
  for (const auto& [peer, nonce, remote] :
       {std::tuple(Peer("other"), 9, "ipv4:1"),
        std::tuple(Peer("box", 8), 9, "ipv4:1"),
        std::tuple(Peer("box"), 10, "ipv4:1"),
        std::tuple(Peer("box"), 9, "ipv4:2")}) {
    const StreamId id = Open(StreamKind::kControl, remote);
    EXPECT_FALSE(lobby_.Greet(id, peer, nonce).has_value());
    EXPECT_NE(lobby_.Find(id), nullptr);  // its own half may still come
  }
}

TEST_F(LobbyTest, ASecondStreamOfOneKindIsRefused) {
  const StreamId first = Open(StreamKind::kBulk);
  const StreamId second = Open(StreamKind::kBulk);
  lobby_.Greet(first, Peer("box"), 9);
  EXPECT_FALSE(lobby_.Greet(second, Peer("box"), 9).has_value());
  EXPECT_EQ(call(second).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(lobby_.Find(second), nullptr);
  EXPECT_NE(lobby_.Find(first), nullptr);
}

TEST_F(LobbyTest, WhoWaitsTooLongIsRefused) {
  const StreamId silent = Open(StreamKind::kBulk);
  const StreamId half = Open(StreamKind::kControl);
  lobby_.Greet(half, Peer("box"), 9);
  scheduler_.RunFor(absl::Seconds(4));
  EXPECT_NE(lobby_.Find(silent), nullptr);
  scheduler_.RunFor(absl::Seconds(2));
  for (const StreamId id : {silent, half}) {
    EXPECT_EQ(call(id).ends, 1);
    EXPECT_EQ(call(id).status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(lobby_.Find(id), nullptr);
  }
}

TEST_F(LobbyTest, AClosedLobbyEndsNoStream) {
  const StreamId id = Open(StreamKind::kBulk);
  lobby_.Close();
  EXPECT_EQ(lobby_.Find(id), nullptr);
  scheduler_.RunFor(absl::Seconds(60));
  EXPECT_EQ(call(id).ends, 0);
}

}  // namespace
}  // namespace dfl::exchange
