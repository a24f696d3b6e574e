#include "daemon/exchange/link_errors.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::exchange {
namespace {

using ::testing::HasSubstr;

TEST(DialError, NamesTheAddressAndWhetherTryingAgainHelps) {
  struct Case {
    absl::StatusCode cause;
    absl::StatusCode told;
    const char* text;
  };
  for (const Case& c :
       {Case{absl::StatusCode::kUnavailable, absl::StatusCode::kUnavailable,
             "dialling box:1: why"},
        Case{absl::StatusCode::kDeadlineExceeded,
             absl::StatusCode::kUnavailable, "dialling box:1: why"},
        Case{absl::StatusCode::kInvalidArgument,
             absl::StatusCode::kInvalidArgument, "dialling box:1: why"},
        Case{absl::StatusCode::kFailedPrecondition,
             absl::StatusCode::kFailedPrecondition, "dialling box:1: why"},
        Case{absl::StatusCode::kUnimplemented,
             absl::StatusCode::kFailedPrecondition,
             "dialling box:1: what listens there is no peer listener"}}) {
    const absl::Status told = DialError("box:1", absl::Status(c.cause, "why"));
    EXPECT_EQ(told.code(), c.told);
    EXPECT_THAT(std::string(told.message()), HasSubstr(c.text));
  }
}

TEST(DialError, APeerThatIsNotAdmittedNeedsAPerson) {
  EXPECT_EQ(DialError("box:1", absl::PermissionDeniedError("why")),
            absl::FailedPreconditionError("dialling box:1: why"));
}

TEST(HandshakeError, TellsWhoRefusedWhom) {
  EXPECT_EQ(HandshakeError(absl::UnavailableError("Socket closed"), "expired"),
            absl::FailedPreconditionError(
                "this node does not admit the peer: expired"));
  for (const char* closed :
       {"Socket closed", "recvmsg:Connection reset by peer",
        "failed to connect: Ssl handshake failed", "sendmsg: Broken pipe"}) {
    EXPECT_THAT(
        std::string(
            HandshakeError(absl::UnavailableError(closed), "").message()),
        HasSubstr("does not accept this node's certificate"));
  }
  for (const absl::Status& other :
       {absl::UnavailableError("Connection refused"),
        absl::InvalidArgumentError("Socket closed")}) {
    EXPECT_EQ(HandshakeError(other, ""), other);
  }
}

TEST(LossReason, TellsBrokenProtocolsLostConnectionsAndClosedLinksApart) {
  const ports::PeerIdentity peer{NodeId("box"), 7, ""};
  EXPECT_EQ(LossReason(peer, "", absl::InvalidArgumentError("why")),
            absl::InvalidArgumentError("box broke the protocol: why"));
  EXPECT_EQ(LossReason(peer, "box:1", absl::UnavailableError("why")),
            absl::UnavailableError("connection to box (box:1) lost: why"));
  EXPECT_EQ(LossReason(peer, "", absl::CancelledError("why")),
            absl::UnavailableError("box closed the link: why"));
}

}  // namespace
}  // namespace dfl::exchange
