#include "client/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
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

// As with TLS, where the client speaks first.
TEST(Target, ADaemonThatHasLetUsInIsNotSaidToRefuseUs) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, generic, length), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  ASSERT_EQ(getsockname(listener, generic, &length), 0);
  const auto target =
      ParseTarget(absl::StrCat("127.0.0.1:", ntohs(address.sin_port)));
  ASSERT_TRUE(target.ok()) << target.status();
  const absl::Status gone = absl::UnavailableError("Socket closed");
  const auto explain = [&](bool let_in) {
    return ExplainUnavailable(*target, "spiffe://plant-4/operator/alice",
                              let_in, gone);
  };
  const absl::Status before = explain(false);
  EXPECT_EQ(before.code(), absl::StatusCode::kUnauthenticated) << before;
  const absl::Status broken = explain(true);
  EXPECT_EQ(broken.code(), absl::StatusCode::kUnavailable) << broken;
  EXPECT_THAT(
      std::string(broken.message()),
      AllOf(HasSubstr("the connection broke"), HasSubstr("Socket closed")));
  close(listener);
}

}  // namespace
}  // namespace client
}  // namespace dfl
