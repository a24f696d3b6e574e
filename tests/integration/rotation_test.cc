// Certificates and the authority of a network are replaced while frames flow:
// no link drops and no frame is lost.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/exchange/grpc_transport.h"
#include "gtest/gtest.h"
#include "tests/integration/grpc_node.h"

namespace dfl::exchange {
namespace {

using ports::LinkId;
using ports::contract::AskNumber;
using ports::contract::ChunkAt;
using ports::contract::Describe;
using tls::MakeAuthority;
using tls::MakeCredentials;
using tls::NodeIdentity;

constexpr int kNodes = 8;
constexpr int64_t kChunkBytes = 20'000;

std::string NameOf(int i) { return absl::StrCat("box-", i); }

// A node that sends on every link, whenever it is told to, and looks at its
// peers as often.
struct Member {
  Member(MadeNetwork& network, int i)
      : security(network.Make(NameOf(i))), node(Options(i), "127.0.0.1:0") {}

  GrpcTransportOptions Options(int i) const {
    GrpcTransportOptions options = NodeOptions(NameOf(i), i + 1);
    options.security = security.get();
    return options;
  }
  void Turn() {
    node.Run([&] {
      node.transport->RecheckPeers(absl::Now());
      for (const LinkId link : node.recorder.order) {
        int64_t& next = sent[link];
        // A full queue is no loss: the next turn goes on.
        if (!node.transport->Send(link, ChunkAt(next, kChunkBytes)).ok()) {
          continue;
        }
        ASSERT_TRUE(node.transport->Send(link, AskNumber(next)).ok());
        ++next;
      }
    });
  }

  const std::unique_ptr<net::NetworkSecurity> security;
  GrpcNode node;
  std::map<LinkId, int64_t> sent;
};

class RotationTest : public ::testing::Test {
 protected:
  // A ring and its chords: 16 links.
  void SetUp() override {
    for (int i = 0; i < kNodes; ++i) {
      members_.push_back(std::make_unique<Member>(network_, i));
    }
    for (int i = 0; i < kNodes; ++i) {
      for (const int step : {1, 3}) {
        members_[i]->node.Run([&] {
          members_[i]->node.transport->Dial(
              members_[(i + step) % kNodes]->node.address);
        });
      }
    }
    for (const auto& member : members_) {
      ASSERT_TRUE(
          member->node.Wait([&] { return member->node.recorder.up() == 4; }));
    }
  }
  void Turn() {
    for (const auto& member : members_) member->Turn();
  }
  // With a pause between the turns: a machine that is loaded to the full shakes
  // no hands in time.
  bool TurnUntil(const std::function<bool()>& done) {
    return testing_support::Eventually(absl::Seconds(20), [&] {
      Turn();
      return done();
    });
  }
  bool AllHaveRenewed() {
    for (const auto& member : members_) {
      int64_t left = 0;
      member->node.Run(
          [&] { left = member->node.transport->unrenewed_links(); });
      if (left > 0) return false;
    }
    return true;
  }
  // One member after the other, as files reach them.
  void Roll(const tls::Authority& issuer,
            const std::vector<tls::Certificate>& bundle) {
    for (int i = 0; i < kNodes; ++i) {
      ASSERT_TRUE(
          members_[i]
              ->security
              ->Use(MakeCredentials(issuer, NodeIdentity(NameOf(i)), bundle))
              .ok());
      Turn();
    }
    ASSERT_TRUE(TurnUntil([&] { return AllHaveRenewed(); }));
  }
  // Whether every listener shows a certificate of `authority`. The probe opens
  // no stream, so no member hears of it.
  bool AllShow(const tls::Authority& authority) {
    const auto probe = network_.Make(
        "probe", MakeCredentials(authority, NodeIdentity("probe")));
    for (const auto& member : members_) {
      const auto channel =
          grpc::CreateChannel(member->node.address,
                              *probe->ChannelCredentials(PeerRoles(), nullptr));
      if (!channel->WaitForConnected(std::chrono::system_clock::now() +
                                     std::chrono::milliseconds(300))) {
        return false;
      }
    }
    return true;
  }
  int64_t Sent() {
    int64_t sent = 0;
    for (const auto& member : members_) {
      for (const auto& [link, count] : member->sent) sent += count;
    }
    return sent;
  }
  int64_t Received() {
    int64_t received = 0;
    for (const auto& member : members_) {
      member->node.Run([&] {
        for (const auto& [id, link] : member->node.recorder.links) {
          received += std::min(link.chunks.size(), link.control.size());
        }
      });
    }
    return received;
  }
  void ExpectNothingWasLost() {
    EXPECT_TRUE(testing_support::Eventually(
        absl::Seconds(20), [&] { return Received() == Sent(); }))
        << Received() << " of " << Sent();
    for (const auto& member : members_) {
      member->node.Run([&] {
        EXPECT_EQ(member->node.recorder.order.size(), 4u);
        for (const auto& [id, link] : member->node.recorder.links) {
          EXPECT_EQ(link.downs, 0) << link.reason;
          for (size_t i = 0; i < link.chunks.size(); ++i) {
            ASSERT_EQ(Describe(link.chunks[i]),
                      Describe(ChunkAt(i, kChunkBytes)));
          }
        }
      });
    }
  }

  MadeNetwork network_;
  std::vector<std::unique_ptr<Member>> members_;
};

TEST_F(RotationTest, LeavesAndTheAuthorityAreReplacedUnderLoad) {
  const tls::Authority& first = network_.authority;
  const tls::Authority second = MakeAuthority("plant-4", absl::Now());
  const std::vector<tls::Certificate> old_one = {first.certificate()};
  const std::vector<tls::Certificate> both = {first.certificate(),
                                              second.certificate()};
  Turn();
  ASSERT_NO_FATAL_FAILURE(Roll(first, old_one));  // leaves alone
  ASSERT_NO_FATAL_FAILURE(Roll(first, both));
  ASSERT_NO_FATAL_FAILURE(Roll(second, both));
  ASSERT_TRUE(TurnUntil([&] { return AllShow(second); }));
  ASSERT_NO_FATAL_FAILURE(Roll(second, {second.certificate()}));
  ASSERT_TRUE(TurnUntil([&] { return Sent() > 1000; }));
  ExpectNothingWasLost();
  std::printf("%ld exchanges, none failed\n", static_cast<long>(Sent()));
}

// Who was not there in time does not hold anybody else up.
TEST_F(RotationTest, AMemberThatKeepsTheOldAuthorityIsLeftBehind) {
  const tls::Authority second = MakeAuthority("plant-4", absl::Now());
  const std::vector<tls::Certificate> both = {network_.authority.certificate(),
                                              second.certificate()};
  for (int i = 1; i < kNodes; ++i) {
    ASSERT_TRUE(
        members_[i]
            ->security
            ->Use(MakeCredentials(second, NodeIdentity(NameOf(i)), both))
            .ok());
  }
  ASSERT_TRUE(members_[0]
                  ->security
                  ->Use(MakeCredentials(network_.authority,
                                        NodeIdentity(NameOf(0)), both))
                  .ok());
  ASSERT_TRUE(TurnUntil([&] { return AllHaveRenewed(); }));
  for (int i = 1; i < kNodes; ++i) {
    ASSERT_TRUE(members_[i]
                    ->security
                    ->Use(MakeCredentials(second, NodeIdentity(NameOf(i)),
                                          {second.certificate()}))
                    .ok());
  }
  for (const auto& member : members_) {
    member->node.Run(
        [&] { member->node.transport->RecheckPeers(absl::Now()); });
  }
  EXPECT_TRUE(members_[0]->node.Wait(
      [&] { return members_[0]->node.recorder.up() == 0; }));
}

}  // namespace
}  // namespace dfl::exchange
