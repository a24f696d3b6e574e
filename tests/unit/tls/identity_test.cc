#include "daemon/tls/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace dfl::tls {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Identity, EveryRoleIsPrintedAndReadBack) {
  for (const Role role : {Role::kNode, Role::kOperator, Role::kViewer,
                          Role::kAdmin, Role::kIssuer}) {
    const Identity identity{"plant-4.example", role, "Gate_way.07"};
    EXPECT_TRUE(Validate(identity).ok());
    const absl::StatusOr<Identity> read = ParseIdentity(ToUri(identity));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, identity);
    EXPECT_EQ(*ParseRole(Name(role)), role);
  }
  EXPECT_EQ(ToUri({"plant-4", Role::kNode, "box-1"}),
            "spiffe://plant-4/node/box-1");
}

TEST(Identity, AWrongUriIsRefusedWithThePartThatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "begins with spiffe://"},
      {"https://plant-4/node/box-1", "begins with spiffe://"},
      {"SPIFFE://plant-4/node/box-1", "begins with spiffe://"},
      {"spiffe://plant-4", "three parts"},
      {"spiffe://plant-4/node", "three parts"},
      {"spiffe://plant-4/node/box-1/", "three parts"},
      {"spiffe://plant-4/node/box-1/x", "three parts"},
      {"spiffe:///node/box-1", "a cluster's name must not be empty"},
      {"spiffe://Plant/node/box-1", "cluster \"Plant\": character 1"},
      {"spiffe://plant:1/node/box-1", "cluster \"plant:1\": character 6"},
      {"spiffe://me@plant/node/box-1", "character 3 is not allowed"},
      {"spiffe://pl%61nt/node/box-1", "character 3 is not allowed"},
      {"spiffe://-plant/node/box-1", "character 1 is not allowed"},
      {"spiffe://plant-4/nod/box-1", "did you mean \"node\""},
      {"spiffe://plant-4/Node/box-1", "node, operator, viewer, admin"},
      {"spiffe://plant-4//box-1", "role"},
      {"spiffe://plant-4/node/", "must not be empty"},
      {"spiffe://plant-4/node/..", "character 1 is not allowed"},
      {"spiffe://plant-4/node/box%2d1", "character 4 is not allowed"},
      {"spiffe://plant-4/node/box-1?x=1", "character 6 is not allowed"},
      {"spiffe://plant-4/node/box-1#x", "character 6 is not allowed"},
      {std::string("spiffe://plant-4/node/box\0x", 27), "character 4"},
  };
  for (const auto& [uri, said] : cases) {
    const absl::StatusOr<Identity> read = ParseIdentity(uri);
    ASSERT_FALSE(read.ok()) << uri;
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(said)) << uri;
  }
}

TEST(Identity, LengthsAreLimited) {
  const std::string cluster(255, 'a');
  const std::string name(63, 'b');
  EXPECT_TRUE(ParseIdentity("spiffe://" + cluster + "/node/" + name).ok());
  EXPECT_THAT(
      ParseIdentity("spiffe://" + cluster + "a/node/b").status().message(),
      HasSubstr("256 characters; at most 255"));
  EXPECT_THAT(ParseIdentity("spiffe://a/node/b" + name).status().message(),
              HasSubstr("64 characters; at most 63"));
  EXPECT_THAT(ParseIdentity("spiffe://a/node/" + std::string(3000, 'b'))
                  .status()
                  .message(),
              HasSubstr("at most 2048"));
}

TEST(Identity, ControlCharactersNeverReachTheMessage) {
  for (const std::string uri :
       {"spiffe://a/node/b\x1b[2J", "spiffe://\x1b/node/b", "\x1b",
        "spiffe://a/\x1b/b"}) {
    EXPECT_THAT(std::string(ParseIdentity(uri).status().message()),
                Not(HasSubstr("\x1b")));
  }
}

}  // namespace
}  // namespace dfl::tls
