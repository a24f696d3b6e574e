// Which network a peer in plain text says it is of.
#include "daemon/exchange/peer_gate.h"

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::exchange {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status Admits(const std::string& ours, const std::string& theirs) {
  ports::PeerIdentity peer;
  peer.node = NodeId("box-2");
  peer.incarnation = 7;
  Greeting greeting;
  greeting.hello = PeerGate(nullptr, theirs).MakeHello(peer, 9);
  return PeerGate(nullptr, ours).Admit(greeting, absl::Now()).status();
}

TEST(PeerGate, AdmitsItsOwnClusterInPlainText) {
  EXPECT_TRUE(Admits("", "").ok());
  EXPECT_TRUE(Admits("plant-4", "plant-4").ok());
}

TEST(PeerGate, RefusesAnotherClusterWithBothNames) {
  const absl::Status other = Admits("plant-4", "plant-5");
  EXPECT_TRUE(absl::IsPermissionDenied(other));
  EXPECT_THAT(std::string(other.message()),
              AllOf(HasSubstr("the peer belongs to cluster \"plant-5\""),
                    HasSubstr("this node to cluster \"plant-4\"")));
  EXPECT_THAT(std::string(Admits("plant-4", "").message()),
              HasSubstr("the peer belongs to no cluster, this node to"));
  EXPECT_THAT(std::string(Admits("", "plant-4").message()),
              HasSubstr("this node to no cluster"));
  EXPECT_THAT(std::string(Admits("a", "\n\xff").message()),
              HasSubstr("cluster \"\\n\\xff\""));
}

TEST(PeerGate, ALinkLocalAddressWithItsZoneCanBeDialled) {
  const auto channel =
      PeerGate(nullptr).Connect("[fe80::1%lo]:7600", grpc::ChannelArguments(),
                                std::make_shared<DialRefusal>());
  ASSERT_TRUE(channel.ok()) << channel.status();
  EXPECT_NE((*channel)->GetState(/*try_to_connect=*/true),
            GRPC_CHANNEL_SHUTDOWN);
}

}  // namespace
}  // namespace dfl::exchange
