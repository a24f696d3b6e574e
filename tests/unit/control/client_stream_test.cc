// The client's streams against a daemon that behaves as a broken one does.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/control_client.h"
#include "dfl/control/v1/control.grpc.pb.h"
#include "tests/unit/control/socket_folder.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;
using ::testing::HasSubstr;

// Sends so many messages on a watch, and then nothing until it is let go.
class SilentDaemon final : public pb::ControlService::Service {
 public:
  explicit SilentDaemon(int messages) : messages_(messages) {}

  void LetGo() { let_go_.Notify(); }

  grpc::Status Watch(grpc::ServerContext* context,
                     const pb::WatchRequest* /*request*/,
                     grpc::ServerWriter<pb::WatchResponse>* writer) override {
    pb::WatchResponse response;
    response.mutable_status()->mutable_node()->set_node("box-1");
    for (int i = 0; i < messages_; ++i) writer->Write(response);
    while (!context->IsCancelled() &&
           !let_go_.WaitForNotificationWithTimeout(absl::Milliseconds(10))) {
    }
    return grpc::Status::OK;
  }

 private:
  const int messages_;
  absl::Notification let_go_;
};

class ClientStreamTest : public ::testing::Test {
 protected:
  void Start(int messages, absl::Duration timeout) {
    daemon_ = std::make_unique<SilentDaemon>(messages);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + folder_.File("x.sock"),
                             grpc::InsecureServerCredentials());
    builder.RegisterService(daemon_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    client::ClientOptions options;
    options.timeout = timeout;
    client_ = *client::ControlClient::Connect(folder_.File("x.sock"), options);
  }

  SocketFolder folder_;
  std::unique_ptr<SilentDaemon> daemon_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<client::ControlClient> client_;
};

TEST_F(ClientStreamTest, AWatchOfADaemonThatFallsSilentEnds) {
  Start(2, absl::Milliseconds(200));
  int messages = 0;
  const absl::Status end = client_->Watch(
      absl::Milliseconds(100),
      [&](const client::WatchUpdate&) {
        ++messages;
        return true;
      },
      nullptr);
  EXPECT_EQ(messages, 2);
  EXPECT_EQ(end.code(), absl::StatusCode::kDeadlineExceeded) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr("and then nothing"));
}

TEST_F(ClientStreamTest, ADaemonThatSaysNothingAtAllIsNoAnswer) {
  Start(0, absl::Milliseconds(200));
  const absl::Status end = client_->Watch(
      absl::Milliseconds(100), [](const client::WatchUpdate&) { return true; },
      nullptr);
  EXPECT_EQ(end.code(), absl::StatusCode::kDeadlineExceeded) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr("no answer within"));
}

// What a reader does with a message does not count as silence of the daemon.
TEST_F(ClientStreamTest, AReaderMayTakeItsTime) {
  Start(2, absl::Milliseconds(100));
  int messages = 0;
  const absl::Status end = client_->Watch(
      absl::Milliseconds(100),
      [&](const client::WatchUpdate&) {
        // Longer than the daemon may be silent, which is 1.1 s.
        absl::SleepFor(absl::Milliseconds(1500));
        return ++messages < 2;
      },
      nullptr);
  EXPECT_TRUE(end.ok()) << end;
  EXPECT_EQ(messages, 2);
}

TEST_F(ClientStreamTest, AWatchThatTheDaemonEndsIsAnError) {
  Start(1, absl::Seconds(10));
  const absl::Status end = client_->Watch(
      absl::Milliseconds(100),
      [&](const client::WatchUpdate&) {
        daemon_->LetGo();
        return true;
      },
      nullptr);
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr("x.sock"));
}

// A daemon that is older than the call.
TEST_F(ClientStreamTest, AnOlderDaemonIsNamedAsSuch) {
  Start(1, absl::Seconds(10));
  const absl::Status end = client_->AskMembers(
      {}, [](const client::MemberAnswer&) { return true; }, nullptr);
  EXPECT_EQ(end.code(), absl::StatusCode::kUnimplemented) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr("does not know this call"));
}

}  // namespace
}  // namespace dfl::control
