#include "client/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/unit/control/socket_folder.h"

namespace dfl {
namespace client {
namespace {

using ::testing::HasSubstr;

TEST(Target, ReadsSocketsAndAddresses) {
  EXPECT_EQ(ParseTarget("unix:/run/x.sock")->text, "unix:/run/x.sock");
  EXPECT_EQ(ParseTarget("unix:///run/x.sock")->text, "unix:/run/x.sock");
  EXPECT_EQ(ParseTarget("/run/x.sock")->socket_path, "/run/x.sock");
  EXPECT_EQ(ParseTarget("./x.sock")->text, "unix:./x.sock");
  EXPECT_EQ(ParseTarget("box-2:7601")->text, "box-2:7601");
  EXPECT_EQ(ParseTarget("[fd00::2]:7601")->text, "[fd00::2]:7601");
  EXPECT_EQ(ParseTarget("10.0.0.1:7601")->socket_path, "");
  EXPECT_FALSE(ParseTarget("10.0.0.1:7601")->plaintext);
  const auto insecure = ParseTarget("insecure:[fd00::2]:7601");
  EXPECT_TRUE(insecure->plaintext);
  EXPECT_EQ(insecure->text, "insecure:[fd00::2]:7601");
  EXPECT_EQ(insecure->address, "[fd00::2]:7601");
}

TEST(Target, RefusesWhatIsNeitherAndSaysWhatIsAllowed) {
  const char* const bad[] = {
      "",           "box-2",       "box-2:", ":7601",
      "box-2:0",    "box-2:65536", "unix:",  "fd00::2:7601",
      "box 2:7601", "box-2:one"};
  for (const char* text : bad) {
    const auto target = ParseTarget(text);
    ASSERT_FALSE(target.ok()) << text;
    EXPECT_EQ(target.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(target.status().message()),
                AllOf(HasSubstr(std::string("\"") + text + "\""),
                      HasSubstr("host:port")));
  }
  EXPECT_FALSE(ParseTarget("/" + std::string(200, 'x')).ok());
}

TEST(Target, SaysWhyNobodyAnswersAtASocket) {
  const SocketFolder folder;
  const absl::Status gone = absl::UnavailableError("failed to connect");
  const auto explain = [&](const std::string& name) {
    return std::string(
        ExplainUnavailable(*ParseTarget(folder.File(name)), "", false, gone)
            .message());
  };
  EXPECT_THAT(explain("none.sock"), HasSubstr("there is no such socket"));
  std::ofstream(folder.File("plain")) << "x";
  EXPECT_THAT(explain("plain"), HasSubstr("nobody listens"));
}

}  // namespace
}  // namespace client
}  // namespace dfl
