// The client where there is no daemon; tests/unit/control has it with one.
#include "client/control_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
