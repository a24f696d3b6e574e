#include "daemon/app/event_loop.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "daemon/app/views/quiet_watch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

using ::testing::ElementsAre;

TEST(EventLoop, RunsTasksOfEachThreadInOrder) {
  EventLoop loop("test");
  std::vector<std::vector<int>> seen(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        loop.Post([&, t, i] { seen[t].push_back(i); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(loop.RunAndWait([] {}));
  for (const std::vector<int>& numbers : seen) {
    ASSERT_EQ(numbers.size(), 1000u);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(numbers[i], i);
  }
  EXPECT_GE(loop.turns(), 4000);
}

TEST(EventLoop, TasksRunOnItsThreadAndNeverInsidePost) {
  EventLoop loop("test");
  EXPECT_FALSE(loop.OnLoop());
  std::vector<int> ran;
  ASSERT_TRUE(loop.RunAndWait([&] {
    EXPECT_TRUE(loop.OnLoop());
    loop.Post([&] { ran.push_back(2); });
    ran.push_back(1);
  }));
  ASSERT_TRUE(loop.RunAndWait([] {}));
  EXPECT_THAT(ran, ElementsAre(1, 2));
}

TEST(EventLoop, TimersRunByTimeAndNotBeforeIt) {
  EventLoop loop("test");
  absl::Notification done;
  std::vector<int> ran;
  absl::Time start;
  absl::Time end;
  loop.Post([&] {
    start = loop.Now();
    loop.After(absl::Milliseconds(30), [&] {
      ran.push_back(3);
      end = loop.Now();
      done.Notify();
    });
    loop.After(absl::Milliseconds(10), [&] { ran.push_back(2); });
    loop.After(absl::Milliseconds(-1), [&] { ran.push_back(1); });
  });
  ASSERT_TRUE(done.WaitForNotificationWithTimeout(absl::Seconds(10)));
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
  EXPECT_GE(end - start, absl::Milliseconds(30));
}

TEST(EventLoop, ACancelledTimerNeverRuns) {
  EventLoop loop("test");
  absl::Notification done;
  std::atomic<bool> ran = false;
  loop.Post([&] {
    const ports::TimerId timer =
        loop.After(absl::Milliseconds(5), [&] { ran = true; });
    EXPECT_NE(timer, 0u);
    loop.Cancel(timer);
    loop.Cancel(timer);
    loop.Cancel(12345);
    loop.After(absl::Milliseconds(20), [&] { done.Notify(); });
  });
  ASSERT_TRUE(done.WaitForNotificationWithTimeout(absl::Seconds(10)));
  EXPECT_FALSE(ran);
}

TEST(EventLoop, ATimerThatSetsItselfAgainDoesNotStarveTasks) {
  EventLoop loop("test");
  std::function<void()> again = [&] {
    loop.After(absl::ZeroDuration(), again);
  };
  loop.Post(again);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(loop.RunAndWait([] {}));
}

TEST(EventLoop, StopDestroysWhatWaitsWithoutRunningIt) {
  const auto held = std::make_shared<int>(1);
  std::atomic<int> ran = 0;
  EventLoop loop("test");
  absl::Notification stopping;
  loop.Post([&loop, &ran, held, &stopping] {
    loop.After(absl::Hours(1), [held] {});
    loop.After(absl::ZeroDuration(), [&ran, held] { ran += 1; });
    loop.Post([&ran, held] { ran += 1; });
    stopping.WaitForNotification();
    // Until Stop has been asked for: what is posted from then on dies at once.
    const auto probe = std::make_shared<int>(1);
    int64_t posted = 0;
    do {
      loop.Post([&ran, probe] { ran += 1; });
      ++posted;
    } while (probe.use_count() == 1 + posted);
  });
  std::thread stopper([&] {
    stopping.Notify();
    loop.Stop();
  });
  stopper.join();
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(held.use_count(), 1);
  loop.Post([&ran] { ran += 1; });
  EXPECT_FALSE(loop.RunAndWait([&ran] { ran += 1; }));
  loop.Stop();
  EXPECT_EQ(ran, 0);
}

TEST(EventLoop, ItsClockNeverGoesBack) {
  EventLoop loop("test");
  EXPECT_LT(absl::AbsDuration(loop.Now() - absl::Now()), absl::Minutes(1));
  absl::Time last = loop.Now();
  for (int i = 0; i < 10'000; ++i) {
    const absl::Time now = loop.Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

// By the counts of a real loop.
TEST(QuietWatch, IsQuietWhileTheLoopRunsNothingElse) {
  EventLoop loop("loop");
  QuietWatch watch;
  absl::Time now = absl::UnixEpoch();
  const auto look = [&] {
    bool quiet = false;
    loop.RunAndWait([&] { quiet = watch.IsQuiet(loop.turns(), now); });
    return quiet;
  };
  EXPECT_FALSE(look());
  EXPECT_TRUE(look());
  EXPECT_TRUE(look());
  loop.RunAndWait([] {});
  EXPECT_FALSE(look());
  EXPECT_TRUE(look());
  now += absl::Seconds(2);  // what the loop is not told of is seen even so
  EXPECT_FALSE(look());
  EXPECT_TRUE(look());
}

}  // namespace
}  // namespace dfl::app
