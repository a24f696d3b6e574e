// Which users of this machine may do what.
#include "daemon/control/unix_roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace dfl::control {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const UnixPeer kDaemon = {900, 901, 1, {}};

UnixPeer Peer(uid_t user, gid_t group, std::vector<gid_t> groups = {}) {
  return {user, group, 4711, std::move(groups)};
}

TEST(UnixRoles, WithoutSettingsRootAndTheDaemonsUserAndGroupAreAdmins) {
  const auto roles = UnixRoles::Resolve({}, {}, kDaemon);
  ASSERT_TRUE(roles.ok()) << roles.status();
  EXPECT_EQ(roles->RoleOf(Peer(0, 0)), Role::kAdmin);
  EXPECT_EQ(roles->RoleOf(Peer(900, 5)), Role::kAdmin);
  EXPECT_EQ(roles->RoleOf(Peer(1000, 901)), Role::kAdmin);
  EXPECT_EQ(roles->RoleOf(Peer(1000, 5, {6, 901})), Role::kAdmin);
  EXPECT_EQ(roles->RoleOf(Peer(1000, 5, {6})), Role::kNone);
}

TEST(UnixRoles, SettingsReplaceTheDaemonsUserAndGroupButNotRoot) {
  const auto roles =
      UnixRoles::Resolve({"1000", "@50"}, {"1001", "@60", "1000"}, kDaemon);
  ASSERT_TRUE(roles.ok()) << roles.status();
  EXPECT_EQ(roles->RoleOf(Peer(0, 0)), Role::kAdmin);
  EXPECT_EQ(roles->RoleOf(Peer(1000, 5)), Role::kAdmin);  // the higher one
  EXPECT_EQ(roles->RoleOf(Peer(7, 50)), Role::kAdmin);
  EXPECT_EQ(roles->RoleOf(Peer(7, 5, {50})), Role::kAdmin);
  EXPECT_EQ(roles->RoleOf(Peer(1001, 5)), Role::kViewer);
  EXPECT_EQ(roles->RoleOf(Peer(7, 60)), Role::kViewer);
  EXPECT_EQ(roles->RoleOf(Peer(900, 901)), Role::kNone);
  EXPECT_EQ(roles->RoleOf(Peer(50, 1000)), Role::kNone);  // user, not group
}

TEST(UnixRoles, NamesAreLookedUp) {
  const auto roles = UnixRoles::Resolve({"nobody"}, {"@root"}, kDaemon);
  ASSERT_TRUE(roles.ok()) << roles.status();
  EXPECT_EQ(roles->RoleOf(Peer(65534, 5)), Role::kAdmin);
  EXPECT_EQ(roles->RoleOf(Peer(7, 0)), Role::kViewer);
}

TEST(UnixRoles, UnknownNamesAreErrorsThatNameTheKey) {
  const absl::Status user =
      UnixRoles::Resolve({"no-such-user"}, {}, kDaemon).status();
  EXPECT_EQ(user.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(user.message()),
              AllOf(HasSubstr("control.admins: found \"no-such-user\""),
                    HasSubstr("no such user"), HasSubstr("\"@name\"")));
  const absl::Status group =
      UnixRoles::Resolve({}, {"@no-such-group"}, kDaemon).status();
  EXPECT_THAT(std::string(group.message()),
              AllOf(HasSubstr("control.viewers: found \"@no-such-group\""),
                    HasSubstr("no such group")));
  for (const char* bad : {"", "@", "-1", "4294967296"}) {
    EXPECT_FALSE(UnixRoles::Resolve({bad}, {}, kDaemon).ok()) << bad;
  }
}

}  // namespace
}  // namespace dfl::control
