// dflctl token: join tokens of the issuer in a network's folder.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "daemon/enrol/join_token.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TokenCommand : public CliTest {
 protected:
  TokenCommand() {
    environment_["XDG_CONFIG_HOME"] = folder_.File("config");
    environment_["USER"] = "alice";
  }
  void Init(const std::string& cluster = "plant-4") {
    const Result result = Run({"cert", "init", cluster});
    ASSERT_EQ(result.code, 0) << result.err;
  }
  json Create(const std::string& node) {
    const Result result =
        Run({"token", "create", "--node", node, "-o", "json"});
    EXPECT_EQ(result.code, 0) << result.err;
    return json::parse(result.out);
  }
  json List() { return json::parse(Run({"token", "list", "-o", "json"}).out); }
};

TEST_F(TokenCommand, CreatePrintsTheTokenAlone) {
  Init();
  const Result result =
      Run({"token", "create", "--node", "box-1", "--ttl", "30m"});
  ASSERT_EQ(result.code, 0) << result.err;
  const absl::StatusOr<enrol::JoinToken> token =
      enrol::ParseJoinToken(result.out);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->node, "box-1");
  EXPECT_EQ(token->cluster, "plant-4");
  EXPECT_LE(token->expires, absl::Now() + absl::Minutes(30));
  EXPECT_GT(token->expires, absl::Now() + absl::Minutes(29));
  EXPECT_THAT(
      result.err,
      AllOf(
          HasSubstr("It can be used once"), HasSubstr("`dflctl token serve`"),
          HasSubstr("on box-1 `dfld join TOKEN --at "),
          Not(HasSubstr(std::string(absl::StripAsciiWhitespace(result.out))))));
  // The pin is that of the network's authority.
  const json shown =
      json::parse(Run({"cert", "show",
                       folder_.File("config/dfl/plant-4/ca.pem"), "-o", "json"})
                      .out);
  EXPECT_EQ(shown["certificates"][0]["fingerprint"], token->authority_sha256);
}

TEST_F(TokenCommand, ListAndRevokeKnowWhatWasCreated) {
  Init();
  const json first = Create("box-1");
  const json second = Create("box-2");
  EXPECT_EQ(first["issuer"], second["issuer"]);
  EXPECT_NE(first["id"], second["id"]);
  const Result revoked =
      Run({"token", "revoke", first["id"].get<std::string>()});
  EXPECT_EQ(revoked.code, 0) << revoked.err;
  EXPECT_THAT(revoked.out, HasSubstr("is revoked"));
  const json list = List();
  EXPECT_EQ(list["issuer"], first["issuer"]);
  ASSERT_EQ(list["tokens"].size(), 2u);
  EXPECT_EQ(list["tokens"][0]["state"], "revoked");
  EXPECT_EQ(list["tokens"][0]["node"], "box-1");
  EXPECT_EQ(list["tokens"][1]["state"], "open");
  EXPECT_EQ(list["tokens"][1]["ended"], nullptr);
  const Result table = Run({"token", "list"});
  EXPECT_THAT(table.out, AllOf(HasSubstr("EXPIRES"), HasSubstr("box-2")));
  EXPECT_THAT(table.out, Not(HasSubstr("dfl1.")));
  const Result unknown = Run({"token", "revoke", "0123"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("`dflctl token list` lists them"));
}

TEST_F(TokenCommand, NeedsTheAuthoritysKey) {
  EXPECT_THAT(Run({"token", "create", "--node", "box-1"}).err,
              HasSubstr("`dflctl cert init CLUSTER`"));
  Init();
  ASSERT_EQ(chmod(folder_.File("config/dfl/plant-4/ca.key").c_str(), 0644), 0);
  const Result open = Run({"token", "create", "--node", "box-1"});
  EXPECT_EQ(open.code, 4);
  EXPECT_THAT(open.out, IsEmpty());
  EXPECT_THAT(List()["tokens"], IsEmpty());
  Init("plant-5");
  EXPECT_THAT(Run({"token", "list"}).err, HasSubstr("--cluster: plant-4"));
  EXPECT_EQ(Run({"token", "create", "--node", "a", "--cluster=plant-5"}).code,
            0);
}

TEST_F(TokenCommand, MistakesInTheCommandLineAreUsageErrors) {
  Init();
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"token"}, "a command is missing: create, list, revoke, serve"},
      {{"token", "create"}, "--node is required"},
      {{"token", "create", "--node", "a b"}, "--node: "},
      {{"token", "create", "--node", "a", "--ttl", "soon"},
       "--ttl: \"soon\" is no duration"},
      {{"token", "create", "--node", "a", "--ttl=0s"}, "allowed: 1s to 720h"},
      {{"token", "create", "--node", "a", "--ttl=10000h"}, "1s to 720h"},
      {{"token", "serve", "--days=0"}, "--days: 0 is not allowed"},
      {{"token", "revoke"}, "ID is required"}};
  for (const auto& [arguments, said] : cases) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 2) << said;
    EXPECT_THAT(result.err, HasSubstr(said));
  }
  const Result address = Run({"token", "serve", "--listen=nowhere"});
  EXPECT_EQ(address.code, 1);
  EXPECT_THAT(address.err, HasSubstr("nowhere"));
}

}  // namespace
}  // namespace dfl::cli
