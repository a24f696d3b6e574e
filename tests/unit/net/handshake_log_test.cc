#include "daemon/net/handshake_log.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace dfl::net {
namespace {

std::string Fatal(absl::string_view reason) {
  return absl::StrCat(
      "Handshake failed with fatal error SSL_ERROR_SSL: error:0A0000C7:SSL "
      "routines::",
      reason, ".");
}

TEST(HandshakeFailure, TellsWhatStrangersDid) {
  EXPECT_EQ(HandshakeFailure(Fatal("peer did not return a certificate")),
            "no-certificate");
  EXPECT_EQ(HandshakeFailure(Fatal("unsupported protocol")), "old-tls");
  EXPECT_EQ(HandshakeFailure(Fatal("no shared cipher")), "no-shared-cipher");
  EXPECT_EQ(HandshakeFailure(Fatal("length mismatch")), "bad-handshake");
}

TEST(HandshakeFailure, IsNotOfOurOwnDialsAndOtherLines) {
  EXPECT_EQ(HandshakeFailure(Fatal("tlsv1 alert internal error")), "");
  EXPECT_EQ(HandshakeFailure(Fatal("wrong version number")), "");
  EXPECT_EQ(HandshakeFailure("Failed getpeername: no such thing"), "");
}

}  // namespace
}  // namespace dfl::net
