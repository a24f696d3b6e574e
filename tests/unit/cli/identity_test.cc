// Which certificate and key speak for the user of dflctl.
#include "cli/identity.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "absl/time/clock.h"
#include "daemon/tls/key_file.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class IdentityTest : public CliTest {
 protected:
  IdentityTest() {
    environment_["XDG_CONFIG_HOME"] = folder_.File("config");
    environment_["USER"] = "alice";
  }
  std::string Of(const std::string& network, const std::string& person) {
    return folder_.File("config/dfl/" + network + "/" + person);
  }
  void Do(const std::vector<std::string>& arguments) {
    const Result result = Run(arguments);
    ASSERT_EQ(result.code, 0) << result.err;
  }
  std::string Error(const absl::Status& status) {
    return std::string(status.message());
  }
};

TEST_F(IdentityTest, IsTheOperatorOfTheOnlyNetwork) {
  Do({"cert", "init", "plant-4"});
  const auto folder = FindIdentityFolder(environment_, "");
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(*folder, Of("plant-4", "operator/alice"));
  const auto identity = LoadIdentity(*folder, absl::Now());
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->identity,
            (tls::Identity{"plant-4", tls::Role::kOperator, "alice"}));
  // Of several, the user's own; without one of the user's, the choice is open.
  Do({"cert", "issue", "bob", "--role", "admin"});
  EXPECT_EQ(*FindIdentityFolder(environment_, ""),
            Of("plant-4", "operator/alice"));
  environment_["USER"] = "carol";
  const absl::Status open = FindIdentityFolder(environment_, "").status();
  EXPECT_EQ(open.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Error(open),
              AllOf(HasSubstr("operator/alice"), HasSubstr("admin/bob"),
                    HasSubstr("--identity")));
}

TEST_F(IdentityTest, AViewersCountsWhereThereIsNoOtherOne) {
  Do({"cert", "init", "plant-4"});
  Do({"cert", "issue", "eve", "--role", "viewer"});
  EXPECT_EQ(*FindIdentityFolder(environment_, ""),
            Of("plant-4", "operator/alice"));
  std::filesystem::remove_all(Of("plant-4", "operator"));
  EXPECT_EQ(*FindIdentityFolder(environment_, ""), Of("plant-4", "viewer/eve"));
}

TEST_F(IdentityTest, OptionAndVariableNameAFolder) {
  environment_["DFLCTL_IDENTITY"] = "/var/folder";
  EXPECT_EQ(*FindIdentityFolder(environment_, ""), "/var/folder");
  EXPECT_EQ(*FindIdentityFolder(environment_, "/opt/folder"), "/opt/folder");
}

TEST_F(IdentityTest, NoneOrSeveralNetworksAreErrorsWithTheCure) {
  const absl::Status none = FindIdentityFolder(environment_, "").status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Error(none),
              AllOf(HasSubstr("dflctl cert init"),
                    HasSubstr("dflctl cert issue"), HasSubstr("--identity")));
  Do({"cert", "init", "plant-4"});
  Do({"cert", "init", "plant-5"});
  const absl::Status several = FindIdentityFolder(environment_, "").status();
  EXPECT_EQ(several.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Error(several), AllOf(HasSubstr("plant-4/operator/alice"),
                                    HasSubstr("plant-5/operator/alice")));
}

TEST_F(IdentityTest, WrongFilesAreNamed) {
  Do({"cert", "init", "plant-4"});
  Do({"cert", "issue", "box-1"});
  const absl::Status missing =
      LoadIdentity(folder_.File("nowhere"), absl::Now()).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Error(missing),
              AllOf(HasSubstr("nowhere/cert.pem"), HasSubstr("--identity")));
  const absl::Status node =
      LoadIdentity(Of("plant-4", "node/box-1"), absl::Now()).status();
  EXPECT_EQ(node.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Error(node), HasSubstr("spiffe://plant-4/node/box-1"));
  const std::string alice = Of("plant-4", "operator/alice");
  EXPECT_THAT(
      Error(LoadIdentity(alice, absl::Now() + absl::Hours(24 * 400)).status()),
      HasSubstr("expired"));
  std::filesystem::permissions(alice + "/key.pem",
                               std::filesystem::perms::group_read,
                               std::filesystem::perm_options::add);
  EXPECT_EQ(LoadIdentity(alice, absl::Now()).status().code(),
            absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace dfl::cli
