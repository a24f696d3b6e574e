#include "cli/watch_feed.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/exit_codes.h"
#include "daemon/control/status_proto.h"
#include "dfl/control/v1/control.grpc.pb.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

namespace pb = dfl::control::v1;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);

// A daemon that answers each watch once and says nothing more. It trains in the
// first watch and has finished in those after it.
class SilentDaemon final : public pb::ControlService::Service {
 public:
  grpc::Status Watch(grpc::ServerContext* context,
                     const pb::WatchRequest* /*request*/,
                     grpc::ServerWriter<pb::WatchResponse>* writer) override {
    control::DaemonStatus status = control::SampleStatus("box-1");
    if (watches_++ > 0) status.node.phase = ports::Phase::kFinished;
    pb::WatchResponse response;
    control::ToProto(status, *response.mutable_status());
    writer->Write(response);
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::OK;
  }
  int watches() const { return watches_; }

 private:
  std::atomic<int> watches_{0};
};

class WatchCommandTest : public CliTest {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + Socket("box-1"),
                             grpc::InsecureServerCredentials());
    builder.RegisterService(&daemon_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  SilentDaemon daemon_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(WatchCommandTest, ADaemonThatFallsSilentIsWatchedAgain) {
  const Result result = RunAt("box-1", {"watch", "--until-finished",
                                        "--interval=100ms", "--timeout=1s"});
  EXPECT_EQ(result.code, kOk) << result.err;
  EXPECT_EQ(daemon_.watches(), 2);
  EXPECT_THAT(result.err, HasSubstr("answered, and then nothing"));
  EXPECT_THAT(result.out, HasSubstr("box-1 finished step"));
}

TEST_F(WatchCommandTest, AnInterruptBeforeTheEndIsNoSuccess) {
  std::thread later([this] {
    // From here on the command has the signal.
    while (daemon_.watches() == 0) absl::SleepFor(absl::Milliseconds(1));
    kill(getpid(), SIGINT);
  });
  const Result result = RunAt("box-1", {"watch", "--until-finished"});
  later.join();
  EXPECT_EQ(result.code, kFailed);
  EXPECT_THAT(result.err, HasSubstr("interrupted; 1 of 1 run has not ended"));
}

TEST(FeedQueue, AReaderThatStallsHoldsUpThoseWhoPush) {
  FeedQueue queue;
  std::atomic<size_t> pushed = 0;
  std::thread writer([&] {
    while (!queue.stopped()) {
      queue.Push({pushed, std::nullopt, absl::OkStatus(), false});
      ++pushed;
    }
  });
  size_t read = 0;
  for (int round = 0; round < 50; ++round) {
    // Full: the writer waits, however long nobody reads.
    while (pushed < read + FeedQueue::kMaxItems) std::this_thread::yield();
    EXPECT_LE(pushed, read + FeedQueue::kMaxItems);
    const auto item = queue.Next(kPatience);
    ASSERT_TRUE(item.has_value());
    EXPECT_EQ(item->index, read++);  // nothing is lost, and in order
  }
  queue.Stop();  // frees the writer
  writer.join();
  EXPECT_LE(pushed, read + FeedQueue::kMaxItems + 1);
}

TEST(FeedQueue, NextGivesUpAfterItsTime) {
  FeedQueue queue;
  EXPECT_FALSE(queue.Next(absl::Milliseconds(1)).has_value());
  queue.Push({3, std::nullopt, absl::OkStatus(), true});
  EXPECT_EQ(queue.Next(absl::ZeroDuration())->index, 3u);
}

}  // namespace
}  // namespace dfl::cli
