// dflctl cert rotate and retire: another authority, and nobody shut out on the
// way.
#include <gmock/gmock.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/credentials.h"
#include "daemon/tls/key_file.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CertRotation : public CliTest {
 protected:
  CertRotation() {
    environment_["XDG_CONFIG_HOME"] = folder_.File("config");
    environment_["USER"] = "alice";
    EXPECT_EQ(Run({"cert", "init", "plant-4"}).code, 0);
    EXPECT_EQ(Run({"cert", "issue", "box-1"}).code, 0);
    EXPECT_EQ(Run({"cert", "issue", "box-2"}).code, 0);
    first_ = Authorities()[0].fingerprint();
  }
  std::string File(const std::string& name) const {
    return folder_.File("config/dfl/plant-4/" + name);
  }
  std::string Content(const std::string& name) {
    return tls::ReadPemFile(File(name)).content;
  }
  std::vector<tls::Certificate> Authorities(
      const std::string& name = "ca.pem") {
    return *tls::ParseBundle(Content(name), name);
  }
  // Whether somebody with the bundle in `name` admits the node `box`.
  bool Admits(const std::string& name, const std::string& box) {
    const std::vector<tls::Certificate> chain =
        *tls::ParseCertificates(Content("node/" + box + "/cert.pem"), box);
    return tls::VerifyChain(chain, Authorities(name), absl::Now()).ok();
  }

  std::string first_;
};

TEST_F(CertRotation, NobodyIsShutOutOnTheWay) {
  const std::string former_key = Content("ca.key");
  const Result rotated = Run({"cert", "rotate"});
  ASSERT_EQ(rotated.code, 0) << rotated.err;
  EXPECT_THAT(rotated.err, AllOf(HasSubstr("copy ca.pem to every node"),
                                 HasSubstr("`dflctl cert retire " + first_)));
  // Both are trusted, and the former one can sign nothing any more.
  ASSERT_EQ(Authorities().size(), 2u);
  EXPECT_NE(Authorities()[0].fingerprint(), first_);
  EXPECT_EQ(Authorities()[1].fingerprint(), first_);
  EXPECT_NE(Content("ca.key"), former_key);
  EXPECT_EQ(tls::ReadPemFile(File("ca.key")).mode, 0600u);
  // The copies for people and boxes, too.
  EXPECT_EQ(Content("operator/alice/ca.pem"), Content("ca.pem"));
  EXPECT_EQ(Content("node/box-1/ca.pem"), Content("ca.pem"));
  EXPECT_TRUE(Admits("ca.pem", "box-1"));
  // A renewal is by the new one, with the same key.
  const std::string key = Content("node/box-1/key.pem");
  ASSERT_EQ(Run({"cert", "renew", "box-1"}).code, 0);
  EXPECT_EQ(Content("node/box-1/key.pem"), key);
  EXPECT_TRUE(Admits("ca.pem", "box-1"));
  EXPECT_EQ(tls::CheckCredentials(
                tls::ReadCredentialFiles({File("node/box-1/ca.pem"),
                                          File("node/box-1/cert.pem"),
                                          File("node/box-1/key.pem")}),
                {"plant-4", tls::Role::kNode, "box-1"}, absl::Now(), geteuid())
                .status(),
            absl::OkStatus());
  // Who was not renewed would be shut out, and is named.
  const Result early = Run({"cert", "retire", first_});
  EXPECT_EQ(early.code, 1);
  EXPECT_THAT(early.err,
              AllOf(HasSubstr("node/box-2"), HasSubstr("operator/alice"),
                    HasSubstr("--force")));
  EXPECT_EQ(Authorities().size(), 2u);
  ASSERT_EQ(Run({"cert", "renew", "box-2"}).code, 0);
  ASSERT_EQ(Run({"cert", "renew", "alice"}).code, 0);
  const Result retired = Run({"cert", "retire", first_.substr(0, 8)});
  ASSERT_EQ(retired.code, 0) << retired.err;
  ASSERT_EQ(Authorities().size(), 1u);
  EXPECT_NE(Authorities()[0].fingerprint(), first_);
  EXPECT_EQ(Content("operator/alice/ca.pem"), Content("ca.pem"));
  EXPECT_TRUE(Admits("ca.pem", "box-1"));
  EXPECT_TRUE(Admits("node/box-1/ca.pem", "box-2"));
  EXPECT_EQ(Run({"cert", "issue", "box-3"}).code, 0);
}

TEST_F(CertRotation, ForceRetiresAnAuthorityThatWasStolen) {
  ASSERT_EQ(Run({"cert", "rotate"}).code, 0);
  ASSERT_EQ(Run({"cert", "retire", first_, "--force"}).code, 0);
  EXPECT_FALSE(Admits("ca.pem", "box-1"));
}

TEST_F(CertRotation, TheAuthorityThatSignsStays) {
  const Result only = Run({"cert", "retire", first_});
  EXPECT_EQ(only.code, 1);
  EXPECT_THAT(only.err, HasSubstr("`dflctl cert rotate`"));
  EXPECT_EQ(Authorities().size(), 1u);
  const Result unknown = Run({"cert", "retire", "0123456789"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("is the SHA-256 of no authority"),
                                 HasSubstr(first_)));
  EXPECT_EQ(Run({"cert", "retire", first_.substr(0, 4)}).code, 1);
}

TEST_F(CertRotation, OneRotationAtATime) {
  ASSERT_EQ(Run({"cert", "rotate", "--days=100"}).code, 0);
  const auto list =
      nlohmann::json::parse(Run({"cert", "list", "-o", "json"}).out);
  EXPECT_EQ(list["certificates"][0]["days_left"], 99);
  const std::string before = Content("ca.pem");
  const Result again = Run({"cert", "rotate"});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, AllOf(HasSubstr("end the former rotation first"),
                               HasSubstr(first_)));
  EXPECT_EQ(Content("ca.pem"), before);
  EXPECT_EQ(Run({"cert", "rotate", "--days=0"}).code, 2);
}

TEST_F(CertRotation, AnInterruptedRotationKeepsAnAuthorityThatSigns) {
  // ca.pem was written, the key was not.
  const std::string key = Content("ca.key");
  ASSERT_EQ(Run({"cert", "rotate"}).code, 0);
  ASSERT_TRUE(tls::WritePrivate(File("ca.key"), key).ok());
  EXPECT_EQ(Run({"cert", "issue", "box-3"}).code, 0);
  const std::string lost = Authorities()[0].fingerprint();
  ASSERT_EQ(Run({"cert", "retire", lost}).code, 0);
  EXPECT_EQ(Run({"cert", "rotate"}).code, 0);
}

}  // namespace
}  // namespace dfl::cli
