// dflctl cert: from nothing to certificates that trust each other.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/tls/authority.h"
#include "daemon/tls/credentials.h"
#include "daemon/tls/key_file.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kHome[] = "config/dfl/plant-4/";

class CertCommand : public CliTest {
 protected:
  CertCommand() {
    environment_["XDG_CONFIG_HOME"] = folder_.File("config");
    environment_["USER"] = "alice";
  }
  // In the network's folder.
  std::string File(const std::string& name) const {
    return folder_.File(kHome + name);
  }
  std::string Content(const std::string& path) {
    return tls::ReadPemFile(path).content;
  }
  void Init() {
    const Result result = Run({"cert", "init", "plant-4"});
    ASSERT_EQ(result.code, 0) << result.err;
  }
  // Of the set of three files in `folder`.
  absl::Status Check(const std::string& folder, const tls::Identity& identity) {
    return tls::CheckCredentials(tls::ReadCredentialFiles(
                                     {folder + "/ca.pem", folder + "/cert.pem",
                                      folder + "/key.pem"}),
                                 identity, absl::Now(), geteuid())
        .status();
  }
};

TEST_F(CertCommand, InitMakesAnAuthorityAndAnOperator) {
  const Result result = Run({"cert", "init", "plant-4"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("FOLDER/config/dfl/plant-4/ca.key"),
            HasSubstr("FOLDER/config/dfl/plant-4/ca.pem"),
            HasSubstr("FOLDER/config/dfl/plant-4/operator/alice/key.pem")));
  EXPECT_THAT(result.err, AllOf(HasSubstr("keep a copy of it in a safe place"),
                                HasSubstr("`dflctl cert issue NAME`")));
  EXPECT_EQ(tls::ReadPemFile(File("ca.key")).mode, 0600u);
  EXPECT_EQ(tls::ReadPemFile(File("operator/alice/key.pem")).mode, 0600u);
  struct stat about = {};
  ASSERT_EQ(stat(File("").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0700u);
  EXPECT_EQ(
      Check(File("operator/alice"), {"plant-4", tls::Role::kOperator, "alice"}),
      absl::OkStatus());
}

TEST_F(CertCommand, InitOverwritesNothing) {
  Init();
  const std::string key = Content(File("ca.key"));
  const Result again = Run({"cert", "init", "plant-4"});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err,
              HasSubstr("ca.key: is there already and is not replaced"));
  EXPECT_THAT(again.out, IsEmpty());
  EXPECT_EQ(Content(File("ca.key")), key);
}

TEST_F(CertCommand, InitTakesFolderOperatorAndDays) {
  const std::string dir = folder_.File("elsewhere/net");
  const Result result = Run({"cert", "init", "plant-4", "--dir", dir,
                             "--operator", "bob", "--days=10", "-o", "json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["certificate"]["identity"], "spiffe://plant-4");
  EXPECT_EQ(json["certificate"]["authority"], true);
  EXPECT_EQ(json["certificate"]["days_left"], 9);
  EXPECT_EQ(json["files"].size(), 5u);
  EXPECT_THAT(result.err,
              HasSubstr("`dflctl cert issue NAME --dir FOLDER/elsewhere/net`"));
  EXPECT_EQ(
      Check(dir + "/operator/bob", {"plant-4", tls::Role::kOperator, "bob"}),
      absl::OkStatus());
}

TEST_F(CertCommand, ThreeCommandsMakeTwoNodesThatTrustEachOther) {
  Init();
  for (const std::string name : {"box-1", "box-2"}) {
    const Result result = Run({"cert", "issue", name});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("copy these three files to " + name),
                      HasSubstr("rights 0600")));
    EXPECT_EQ(Check(File("node/" + name), {"plant-4", tls::Role::kNode, name}),
              absl::OkStatus());
  }
  EXPECT_EQ(Content(File("node/box-1/ca.pem")),
            Content(File("node/box-2/ca.pem")));
}

TEST_F(CertCommand, IssueTakesRoleFolderAndDays) {
  Init();
  const std::string out = folder_.File("bob");
  const Result result =
      Run({"cert", "issue", "bob", "--role=viewer", "--out", out, "--days=30",
           "--cluster=plant-4", "-o", "json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["certificate"]["role"], "viewer");
  EXPECT_EQ(json["certificate"]["name"], "bob");
  EXPECT_EQ(json["certificate"]["days_left"], 29);
  EXPECT_EQ(Check(out, {"plant-4", tls::Role::kViewer, "bob"}),
            absl::OkStatus());
  // The copy has no key.
  EXPECT_EQ(Content(File("viewer/bob/cert.pem")), Content(out + "/cert.pem"));
  EXPECT_EQ(Content(File("viewer/bob/key.pem")), "");
}

TEST_F(CertCommand, IssueOverwritesNothing) {
  Init();
  ASSERT_EQ(Run({"cert", "issue", "box-1"}).code, 0);
  const std::string key = Content(File("node/box-1/key.pem"));
  const Result again = Run({"cert", "issue", "box-1"});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("`dflctl cert renew box-1`"));
  EXPECT_EQ(Content(File("node/box-1/key.pem")), key);
  // Nor the files of another box.
  const Result other =
      Run({"cert", "issue", "box-2", "--out", File("node/box-1")});
  EXPECT_EQ(other.code, 1);
  EXPECT_EQ(Content(File("node/box-1/key.pem")), key);
  // Nor the bundle of another network.
  std::filesystem::create_directories(folder_.File("used"));
  WriteFile("used/ca.pem", "another");
  EXPECT_THAT(
      Run({"cert", "issue", "box-3", "--out", folder_.File("used")}).err,
      HasSubstr("bundle of another network"));
}

TEST_F(CertCommand, RenewKeepsKeyAndIdentity) {
  Init();
  ASSERT_EQ(Run({"cert", "issue", "box-1", "--days=1"}).code, 0);
  const std::string before = Content(File("node/box-1/cert.pem"));
  const Result result = Run({"cert", "renew", "box-1", "--days=90"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("spiffe://plant-4/node/box-1, 90 days"));
  EXPECT_THAT(result.err, HasSubstr("next: replace cert.pem at box-1"));
  EXPECT_NE(Content(File("node/box-1/cert.pem")), before);
  EXPECT_EQ(Check(File("node/box-1"), {"plant-4", tls::Role::kNode, "box-1"}),
            absl::OkStatus());
}

TEST_F(CertCommand, RenewTakesAFileToo) {
  Init();
  const std::string out = folder_.File("box-1");
  ASSERT_EQ(Run({"cert", "issue", "box-1", "--out", out}).code, 0);
  const std::string before = Content(out + "/cert.pem");
  const Result result = Run({"cert", "renew", out + "/cert.pem"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(Content(out + "/cert.pem"), before);
  EXPECT_EQ(Content(File("node/box-1/cert.pem")), Content(out + "/cert.pem"));
  EXPECT_EQ(Check(out, {"plant-4", tls::Role::kNode, "box-1"}),
            absl::OkStatus());
}

TEST_F(CertCommand, RenewAsksForTheRoleWhereANameHasSeveral) {
  Init();
  ASSERT_EQ(Run({"cert", "issue", "alice"}).code, 0);
  const Result both = Run({"cert", "renew", "alice"});
  EXPECT_EQ(both.code, 1);
  EXPECT_THAT(both.err, HasSubstr("2 certificates of \"alice\"; name one with "
                                  "--role"));
  EXPECT_EQ(Run({"cert", "renew", "alice", "--role=operator"}).code, 0);
  EXPECT_THAT(Run({"cert", "renew", "nobody"}).err,
              HasSubstr("nothing was issued to \"nobody\""));
}

TEST_F(CertCommand, RenewRefusesWhatAnotherAuthoritySigned) {
  Init();
  ASSERT_EQ(Run({"cert", "issue", "box-1"}).code, 0);
  ASSERT_EQ(
      Run({"cert", "init", "plant-4", "--dir", folder_.File("other")}).code, 0);
  const Result result = Run({"cert", "renew", File("node/box-1/cert.pem"),
                             "--dir", folder_.File("other")});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("was signed by"));
}

TEST_F(CertCommand, ListTellsStateAndDaysOfEach) {
  Init();
  ASSERT_EQ(Run({"cert", "issue", "box-1", "--days=30"}).code, 0);
  const Result table = Run({"cert", "list"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("IDENTITY"), HasSubstr("DAYS"),
                               HasSubstr("spiffe://plant-4/operator/alice"),
                               HasSubstr("FOLDER/config/dfl/plant-4/node/"
                                         "box-1/cert.pem")));
  const auto json =
      nlohmann::json::parse(Run({"cert", "list", "-o", "json"}).out);
  ASSERT_EQ(json["certificates"].size(), 3u);
  EXPECT_EQ(json["certificates"][0]["identity"], "spiffe://plant-4");
  EXPECT_EQ(json["certificates"][1]["identity"], "spiffe://plant-4/node/box-1");
  EXPECT_EQ(json["certificates"][1]["days_left"], 29);
  EXPECT_EQ(json["certificates"][1]["state"], "valid");
  EXPECT_THAT(Run({"cert", "list", "-o", "yaml"}).out,
              HasSubstr("state: valid"));
}

TEST_F(CertCommand, ListTellsOfAnotherAuthorityAndOfDamage) {
  Init();
  ASSERT_EQ(Run({"cert", "issue", "box-1"}).code, 0);
  ASSERT_EQ(
      Run({"cert", "init", "plant-4", "--dir", folder_.File("other")}).code, 0);
  ASSERT_TRUE(
      tls::WritePublic(File("ca.pem"), Content(folder_.File("other/ca.pem")))
          .ok());
  EXPECT_THAT(Run({"cert", "list"}).out, HasSubstr("unknown-authority"));
  WriteFile(std::string(kHome) + "node/box-1/cert.pem", "damaged");
  const Result damaged = Run({"cert", "list"});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.err, HasSubstr("box-1/cert.pem: has no certificate"));
  EXPECT_THAT(damaged.out, HasSubstr("operator/alice"));
}

TEST_F(CertCommand, ListTellsOfAnExpiredOne) {
  const absl::Time then = absl::Now() - absl::Hours(49);
  const auto authority =
      tls::Authority::Make("plant-4", {then, absl::Hours(1000)}).value();
  const auto leaf = authority
                        .Issue(tls::PrivateKey::Generate(),
                               {"plant-4", tls::Role::kNode, "box-1"},
                               {then, absl::Hours(24)})
                        .value();
  std::filesystem::create_directories(File("node/box-1"));
  ASSERT_TRUE(
      tls::WritePublic(File("ca.pem"), authority.certificate().ToPem()).ok());
  ASSERT_TRUE(tls::WritePublic(File("node/box-1/cert.pem"), leaf.ToPem()).ok());
  const auto json =
      nlohmann::json::parse(Run({"cert", "list", "-o", "json"}).out);
  EXPECT_EQ(json["certificates"][1]["state"], "expired");
  EXPECT_EQ(json["certificates"][1]["days_left"], -2);
}

TEST_F(CertCommand, ShowTellsWhatAFileHolds) {
  Init();
  ASSERT_EQ(Run({"cert", "issue", "box-1"}).code, 0);
  const Result text = Run({"cert", "show", File("node/box-1/cert.pem")});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("spiffe://plant-4/node/box-1"),
                              HasSubstr("days left"), HasSubstr("EC P-256"),
                              HasSubstr("SHA-256"), HasSubstr("O=plant-4")));
  const auto json = nlohmann::json::parse(
      Run({"cert", "show", File("ca.pem"), "-o", "json"}).out);
  EXPECT_EQ(json["certificates"][0]["authority"], true);
  EXPECT_EQ(json["certificates"][0]["fingerprint"].get<std::string>().size(),
            64u);
  EXPECT_EQ(Run({"cert", "show", File("none.pem")}).code, 1);
  const Result key = Run({"cert", "show", File("ca.key")});
  EXPECT_EQ(key.code, 1);
  EXPECT_THAT(key.err, HasSubstr("has no certificate in PEM form"));
}

TEST_F(CertCommand, TheNetworkIsFoundOrAskedFor) {
  const Result none = Run({"cert", "list"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("`dflctl cert init CLUSTER`"));
  Init();
  ASSERT_EQ(Run({"cert", "init", "plant-5"}).code, 0);
  const Result several = Run({"cert", "issue", "box-1"});
  EXPECT_EQ(several.code, 1);
  EXPECT_THAT(several.err, HasSubstr("--cluster: plant-4, plant-5"));
  EXPECT_EQ(Run({"cert", "issue", "box-1", "--cluster=plant-5"}).code, 0);
  EXPECT_THAT(Run({"cert", "list", "--cluster=plant-6"}).err,
              HasSubstr("plant-6/ca.pem: there is no such file"));
  environment_.erase("XDG_CONFIG_HOME");
  EXPECT_THAT(Run({"cert", "list"}).err, HasSubstr("HOME is set"));
  environment_["HOME"] = folder_.File("home");
  EXPECT_EQ(Run({"cert", "init", "plant-7"}).code, 0);
  EXPECT_NE(Content(folder_.File("home/.config/dfl/plant-7/ca.pem")), "");
}

TEST_F(CertCommand, MistakesInTheCommandLineAreUsageErrors) {
  Init();
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"cert", "init", "Plant"}, "cluster \"Plant\": character 1"},
      {{"cert", "init", "p", "--operator", "a b"}, "character 2"},
      {{"cert", "init", "p", "--days=0"}, "--days: 0 is not allowed"},
      {{"cert", "issue", "a b"}, "character 2 is not allowed"},
      {{"cert", "issue", "a", "--role=viewr"}, "did you mean \"viewer\""},
      {{"cert", "issue", "a", "--role=issuer"}, "`dflctl token serve`"},
      {{"cert", "issue", "a", "--days=99999"}, "allowed: 1 to 36500"},
      {{"cert", "renew", "a", "--role=x"}, "node, operator, viewer, admin"},
      {{"cert"},
       "a command is missing: init, issue, renew, rotate, retire, list, "
       "show"},
      {{"cert", "issue"}, "NAME is required"},
  };
  for (const auto& [arguments, said] : cases) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 2) << said;
    EXPECT_THAT(result.err, HasSubstr(said));
    EXPECT_THAT(result.out, IsEmpty());
  }
}

TEST_F(CertCommand, AKeyThatOthersCanReadSignsNothing) {
  Init();
  ASSERT_EQ(chmod(File("ca.key").c_str(), 0644), 0);
  const Result result = Run({"cert", "issue", "box-1"});
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.err, HasSubstr("`chmod 600 FOLDER/config/dfl/plant-4/"
                                    "ca.key`"));
  std::filesystem::remove(File("ca.key"));
  EXPECT_THAT(Run({"cert", "issue", "box-1"}).err,
              HasSubstr("where the authority's key is kept"));
}

TEST_F(CertCommand, CompletionKnowsIt) {
  const std::string offered = Run({"__complete", "cert", ""}).out;
  for (const char* command :
       {"init", "issue", "renew", "rotate", "retire", "list", "show"}) {
    EXPECT_THAT(offered, HasSubstr(absl::StrCat(command, "\t")));
  }
}

}  // namespace
}  // namespace dfl::cli
