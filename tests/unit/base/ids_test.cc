#include "daemon/base/ids.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl {
namespace {

TEST(ValidateNodeName, TakesHostLikeNames) {
  for (const char* name : {"a", "gateway-07", "Box_1.site", "9"}) {
    EXPECT_TRUE(ValidateNodeName(name).ok()) << name;
  }
}

TEST(ValidateNodeName, SaysWhichCharacterIsWrong) {
  const absl::Status status = ValidateNodeName("box 7");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("character 4"));
  EXPECT_FALSE(ValidateNodeName("").ok());
  EXPECT_FALSE(ValidateNodeName("-a").ok());
  EXPECT_FALSE(ValidateNodeName(std::string(64, 'a')).ok());
}

}  // namespace
}  // namespace dfl
