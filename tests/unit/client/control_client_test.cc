// The client where there is no daemon; tests/unit/control has it with one.
#include "client/control_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/unit/control/socket_folder.h"

namespace dfl {
namespace client {
namespace {

using ::testing::HasSubstr;

TEST(ControlClient, RefusesATargetThatIsNone) {
  EXPECT_EQ(ControlClient::Connect("nonsense").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ControlClient, NobodyThereIsUnavailableAndNamesTheTarget) {
  const SocketFolder folder;
  ClientOptions options;
  options.timeout = absl::Seconds(5);
  auto client = ControlClient::Connect(folder.File("none.sock"), options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->target(), "unix:" + folder.File("none.sock"));
  const absl::Time before = absl::Now();
  const auto status = (*client)->Status();
  EXPECT_EQ(status.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.status().message()),
              HasSubstr(folder.File("none.sock")));
  // Four attempts with 350 ms of waits between them, not five seconds.
  EXPECT_LT(absl::Now() - before, absl::Seconds(4));
  EXPECT_EQ((*client)->Train(TrainAction::kStart).status().code(),
            absl::StatusCode::kUnavailable);
}

// A daemon that has no processor to itself takes a while to greet.
TEST(ControlClient, ASlowGreetingIsWaitedFor) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, generic, length), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, generic, &length), 0);
  ClientOptions options;
  options.timeout = absl::Seconds(1);
  options.insecure = true;
  const auto client = ControlClient::Connect(
      absl::StrCat("127.0.0.1:", ntohs(address.sin_port)), options);
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::Time before = absl::Now();
  const auto status = (*client)->Train(TrainAction::kStart).status();
  EXPECT_GE(absl::Now() - before, options.timeout / 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no answer within"));
  close(listener);
}

TEST(ControlClient, AWatchOfNobodyEndsAndAWatchIsStopped) {
  const SocketFolder folder;
  auto client = *ControlClient::Connect(folder.File("none.sock"));
  EXPECT_EQ(client
                ->Watch(
                    absl::Seconds(1), [](const WatchUpdate&) { return true; },
                    nullptr)
                .code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace client
}  // namespace dfl
