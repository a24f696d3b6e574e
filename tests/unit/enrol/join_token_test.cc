#include "daemon/enrol/join_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/sha256.h"
#include "dfl/enrol/v1/enrol.pb.h"

namespace dfl::enrol {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

JoinToken MakeToken() {
  JoinToken token;
  token.issuer = "0123456789abcdef";
  token.cluster = "plant-4";
  token.node = "box-1";
  token.expires = absl::FromUnixSeconds(1'800'000'000);
  token.authority_sha256 = std::string(64, 'a');
  token.secret = std::string(kSecretBytes, '\x07');
  return token;
}

// A token's text, with the right checksum.
std::string TextOf(const dfl::enrol::v1::JoinToken& token) {
  const std::string content = token.SerializeAsString();
  const std::string checksum =
      absl::HexStringToBytes(Sha256Hex(content).substr(0, 8));
  return absl::StrCat("dfl1.", absl::WebSafeBase64Escape(content + checksum));
}

TEST(JoinToken, IsPrintedAndReadBack) {
  const JoinToken token = MakeToken();
  const std::string text = ToText(token);
  EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ"
                                   "RSTUVWXYZ0123456789-_."),
            std::string::npos);
  const absl::StatusOr<JoinToken> read =
      ParseJoinToken(absl::StrCat("  ", text, "\n"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, token);
}

TEST(JoinToken, EveryDamageIsFoundAndTheTextIsNotQuoted) {
  const std::string text = ToText(MakeToken());
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(ParseJoinToken(text.substr(0, length)).ok()) << length;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = damaged[i] == 'x' ? 'y' : 'x';
    const absl::Status status = ParseJoinToken(damaged).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << i;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(text.substr(20))));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("`dflctl token create`"));
  }
}

TEST(JoinToken, GarbageIsToldFromALaterVersion) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "is empty"},
      {"  ", "is empty"},
      {"hello", "does not look like one"},
      {"-----BEGIN CERTIFICATE-----", "does not look like one"},
      {"dfl2.AAAA", "later version"},
      {"dfl1.", "is damaged"},
      {"dfl1.%%%%", "is damaged"},
      {absl::StrCat("dfl1.", std::string(100'000, 'A')), "is damaged"}};
  for (const auto& [text, said] : cases) {
    EXPECT_THAT(std::string(ParseJoinToken(text).status().message()),
                HasSubstr(said));
  }
}

TEST(JoinToken, FieldsThatAreMissingWrongOrUnknownAreRefused) {
  dfl::enrol::v1::JoinToken good;
  good.set_issuer("0123456789abcdef");
  good.set_cluster("plant-4");
  good.set_node("box-1");
  good.set_expires_unix_seconds(1'800'000'000);
  good.set_authority_sha256(std::string(32, '\xaa'));
  good.set_secret(std::string(32, '\x07'));
  ASSERT_TRUE(ParseJoinToken(TextOf(good)).ok());

  std::vector<dfl::enrol::v1::JoinToken> bad(8, good);
  bad[0].set_issuer("0123");
  bad[1].set_issuer("0123456789ABCDEF");
  bad[2].set_cluster("Plant");
  bad[3].set_node("a b");
  bad[4].clear_expires_unix_seconds();
  bad[5].set_authority_sha256("short");
  bad[6].set_secret("short");
  dfl::enrol::v1::JoinToken::GetReflection()
      ->MutableUnknownFields(&bad[7])
      ->AddVarint(99, 1);
  for (const dfl::enrol::v1::JoinToken& token : bad) {
    EXPECT_THAT(std::string(ParseJoinToken(TextOf(token)).status().message()),
                HasSubstr("does not know"))
        << token.ShortDebugString();
  }
}

TEST(JoinToken, ItsIdDoesNotTellItsSecret) {
  const std::string secret = RandomBytes(kSecretBytes);
  EXPECT_EQ(TokenId(secret).size(), 16u);
  EXPECT_EQ(TokenId(secret), TokenId(secret));
  EXPECT_NE(RandomBytes(kSecretBytes), secret);
  EXPECT_NE(TokenId(secret), absl::BytesToHexString(secret).substr(0, 16));
}

}  // namespace
}  // namespace dfl::enrol
