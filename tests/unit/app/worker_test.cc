#include "daemon/app/worker.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "daemon/app/event_loop.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

TEST(Worker, RunsInOrderOffTheLoopAndIsDoneOnIt) {
  EventLoop loop("loop");
  Worker worker(loop, "worker");
  std::vector<int> worked;
  std::vector<int> done;
  absl::Notification finished;
  loop.Post([&] {
    for (int i = 0; i < 100; ++i) {
      worker.Run(
          [&, i] {
            EXPECT_FALSE(loop.OnLoop());
            worked.push_back(i);
          },
          [&, i] {
            EXPECT_TRUE(loop.OnLoop());
            done.push_back(i);
            if (i == 99) finished.Notify();
          });
    }
    EXPECT_TRUE(done.empty());
  });
  ASSERT_TRUE(finished.WaitForNotificationWithTimeout(absl::Seconds(10)));
  ASSERT_EQ(worked.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(worked[i], i);
    EXPECT_EQ(done[i], i);
  }
}

TEST(Worker, YieldsMoreThanTheProcessIfItIsAsked) {
  EventLoop loop("loop");
  const int usual = getpriority(PRIO_PROCESS, 0);
  Worker worker(loop, "worker", {.niceness = 3});
  int its = 0;
  absl::Notification finished;
  worker.Run([&] { its = getpriority(PRIO_PROCESS, 0); },
             [&] { finished.Notify(); });
  ASSERT_TRUE(finished.WaitForNotificationWithTimeout(absl::Seconds(10)));
  EXPECT_EQ(its, std::min(usual + 3, 19));
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), usual);
}

TEST(Worker, StopEndsAfterTheWorkUnderWayAndDropsTheRest) {
  EventLoop loop("loop");
  const auto held = std::make_shared<int>(1);
  std::atomic<int> worked = 0;
  absl::Notification started;
  Worker worker(loop, "worker");
  worker.Run(
      [&] {
        started.Notify();
        ++worked;
      },
      [held] {});
  started.WaitForNotification();
  worker.Stop();
  worker.Run([&, held] { ++worked; }, [] {});
  EXPECT_EQ(worked, 1);
  loop.Stop();
  EXPECT_EQ(held.use_count(), 1);
}

int64_t Threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

TEST(Worker, HasNoThreadBeforeThereIsWork) {
  EventLoop loop("loop");
  const int64_t before = Threads();
  Worker worker(loop, "worker");
  EXPECT_EQ(Threads(), before);
}

// Its thread ends at once after each piece of work, if no more is there.
TEST(Worker, WorksOnAfterItsThreadHasEnded) {
  EventLoop loop("loop");
  Worker worker(loop, "worker", {.idle = absl::ZeroDuration()});
  std::vector<int> worked;
  for (int i = 0; i < 50; ++i) {
    absl::Notification finished;
    worker.Run([&worked, i] { worked.push_back(i); },
               [&finished] { finished.Notify(); });
    ASSERT_TRUE(finished.WaitForNotificationWithTimeout(absl::Seconds(10)));
  }
  ASSERT_EQ(worked.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(worked[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace dfl::app
