#include "daemon/app/enrolling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace dfl::app {
namespace {

using ::testing::HasSubstr;

config::NodeSettings Settings() {
  enrol::JoinToken token;
  token.issuer = "0123456789abcdef";
  token.cluster = "plant-4";
  token.node = "box-1";
  token.expires = absl::FromUnixSeconds(1'800'000'000);
  token.authority_sha256 = std::string(64, 'a');
  token.secret = std::string(enrol::kSecretBytes, 's');
  config::NodeSettings settings;
  settings.name = "box-1";
  settings.join.token = enrol::ToText(token);
  settings.join.at = "issuer:7602";
  return settings;
}

std::string ErrorOf(const config::NodeSettings& settings) {
  const absl::Status status = Enrolling::TokenOf(settings).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(Enrolling, IsWantedWithATokenAndWithoutACertificate) {
  const tls::CredentialPaths none = {"/none/ca.pem", "/none/cert.pem",
                                     "/none/key.pem"};
  config::NodeSettings settings = Settings();
  EXPECT_TRUE(Enrolling::Wanted(settings, none));
  EXPECT_FALSE(Enrolling::Wanted(settings, {"", "/proc/self/exe", ""}));
  settings.security = config::Security::kInsecure;
  EXPECT_FALSE(Enrolling::Wanted(settings, none));
  EXPECT_FALSE(Enrolling::Wanted(config::NodeSettings(), none));
}

TEST(Enrolling, ItsTokenMustBeForThisNode) {
  const absl::StatusOr<enrol::JoinToken> token = Enrolling::TokenOf(Settings());
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->cluster, "plant-4");
  config::NodeSettings settings = Settings();
  settings.name = "box-2";
  EXPECT_THAT(ErrorOf(settings), HasSubstr("set `name: box-1`"));
  settings = Settings();
  settings.cluster = "plant-5";
  EXPECT_THAT(ErrorOf(settings), HasSubstr("is of network plant-4"));
  settings = Settings();
  settings.join.at = "";
  EXPECT_THAT(ErrorOf(settings), HasSubstr("join.at: is not set"));
  settings = Settings();
  settings.join.token.pop_back();
  EXPECT_THAT(ErrorOf(settings), HasSubstr("join.token: the join token is "
                                           "damaged"));
}

TEST(Enrolling, AnIssuerNeedsAFolder) {
  config::NodeSettings settings;
  EXPECT_EQ(*StartIssuer(settings, nullptr), nullptr);
  settings.enrol.listen = "127.0.0.1:0";
  EXPECT_THAT(std::string(StartIssuer(settings, nullptr).status().message()),
              HasSubstr("enrol.folder: is not set"));
  settings.enrol.folder = "/none";
  EXPECT_THAT(std::string(StartIssuer(settings, nullptr).status().message()),
              HasSubstr("enrol: /none/ca.pem: there is no such file"));
}

}  // namespace
}  // namespace dfl::app
