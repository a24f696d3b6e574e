#include "daemon/simports/sim_loop.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/rng.h"
#include "daemon/simports/sim_scheduler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::simports {
namespace {

using ::testing::ElementsAre;

TEST(SimScheduler, RunsByTimeThenByOrderOfScheduling) {
  SimScheduler scheduler;
  std::vector<std::string> ran;
  const auto note = [&](const char* what) {
    return [&ran, what] { ran.push_back(what); };
  };
  scheduler.After(absl::Seconds(2), 0, note("late"));
  scheduler.After(absl::Seconds(1), 0, note("first"));
  scheduler.After(absl::Seconds(1), 0, note("second"));
  scheduler.After(absl::Seconds(-5), 0, note("now"));
  EXPECT_TRUE(scheduler.RunUntilIdle());
  EXPECT_THAT(ran, ElementsAre("now", "first", "second", "late"));
  EXPECT_EQ(scheduler.Now(), absl::UnixEpoch() + absl::Seconds(2));
}

TEST(SimScheduler, RunForEndsAtItsTimeEvenWhenNothingIsDue) {
  SimScheduler scheduler;
  bool ran = false;
  scheduler.After(absl::Seconds(3), 0, [&] { ran = true; });
  scheduler.RunFor(absl::Seconds(2));
  EXPECT_FALSE(ran);
  EXPECT_EQ(scheduler.Now(), absl::UnixEpoch() + absl::Seconds(2));
  scheduler.RunFor(absl::Seconds(1));
  EXPECT_TRUE(ran);
}

TEST(SimScheduler, RunUntilStopsAtTheConditionOrTheLimit) {
  SimScheduler scheduler;
  int ticks = 0;
  std::function<void()> tick = [&] {
    ++ticks;
    scheduler.After(absl::Seconds(1), 0, tick);
  };
  tick();
  EXPECT_TRUE(
      scheduler.RunUntil([&] { return ticks == 4; }, absl::Seconds(10)));
  EXPECT_EQ(scheduler.Now(), absl::UnixEpoch() + absl::Seconds(3));
  EXPECT_FALSE(
      scheduler.RunUntil([&] { return ticks == 100; }, absl::Seconds(10)));
  EXPECT_EQ(scheduler.Now(), absl::UnixEpoch() + absl::Seconds(13));
  EXPECT_FALSE(scheduler.RunUntilIdle(50));  // it never ends by itself
}

// Against a plain list, sorted before each step.
TEST(SimScheduler, KeepsItsOrderOverManyCancellations) {
  SimScheduler scheduler;
  Rng rng(7);
  struct Planned {
    absl::Time when;
    SimScheduler::EventId id = 0;
    int64_t number = 0;
  };
  std::vector<Planned> planned;
  std::vector<int64_t> ran;
  std::vector<int64_t> expected;
  for (int64_t number = 0; number < 20'000; ++number) {
    const absl::Duration delay =
        absl::Milliseconds(static_cast<int64_t>(rng.Below(50)));
    planned.push_back(
        {scheduler.Now() + delay,
         scheduler.After(delay, 0, [&ran, number] { ran.push_back(number); }),
         number});
    const uint64_t draw = rng.Below(10);
    const size_t any = rng.Below(planned.size());
    if (draw < 5) {
      scheduler.Cancel(planned[any].id);
      scheduler.Cancel(planned[any].id);  // ignored
      planned.erase(planned.begin() + static_cast<int64_t>(any));
    } else if (draw < 9) {
      const auto next =
          std::min_element(planned.begin(), planned.end(),
                           [](const Planned& a, const Planned& b) {
                             return std::make_pair(a.when, a.number) <
                                    std::make_pair(b.when, b.number);
                           });
      expected.push_back(next->number);
      planned.erase(next);
      ASSERT_TRUE(scheduler.Step());
    }
    ASSERT_EQ(scheduler.pending(), static_cast<int64_t>(planned.size()));
  }
  EXPECT_EQ(ran, expected);
  scheduler.CancelAll();
  EXPECT_EQ(scheduler.pending(), 0);
  EXPECT_FALSE(scheduler.Step());
}

TEST(SimLoop, PostsRunInOrderAndNeverInsideTheCall) {
  SimScheduler scheduler;
  SimLoop loop(scheduler);
  std::vector<int> ran;
  loop.Post([&] {
    loop.Post([&] { ran.push_back(3); });
    loop.After(absl::ZeroDuration(), [&] { ran.push_back(4); });
    ran.push_back(1);
  });
  loop.Post([&] { ran.push_back(2); });
  EXPECT_TRUE(ran.empty());
  scheduler.RunUntilIdle();
  EXPECT_THAT(ran, ElementsAre(1, 2, 3, 4));
}

TEST(SimLoop, ACancelledTimerNeverRuns) {
  SimScheduler scheduler;
  SimLoop loop(scheduler);
  bool ran = false;
  const ports::TimerId timer =
      loop.After(absl::Seconds(1), [&] { ran = true; });
  EXPECT_NE(timer, 0u);
  loop.Cancel(timer);
  loop.Cancel(timer);
  loop.Cancel(987);
  scheduler.RunUntilIdle();
  EXPECT_FALSE(ran);
}

TEST(SimLoop, WhatWasDueWhileItWasFrozenRunsAtThawInItsOrder) {
  SimScheduler scheduler;
  SimLoop loop(scheduler);
  SimLoop other(scheduler);
  std::vector<std::string> ran;
  ports::TimerId cancelled = 0;
  loop.After(absl::Seconds(3), [&] { ran.emplace_back("third"); });
  cancelled = loop.After(absl::Seconds(2), [&] { ran.emplace_back("second"); });
  loop.After(absl::Seconds(1), [&] {
    ran.emplace_back("first");
    loop.Cancel(cancelled);
    loop.Post([&] { ran.emplace_back("posted"); });
  });
  loop.After(absl::Seconds(9), [&] { ran.emplace_back("later"); });
  other.After(absl::Seconds(4), [&] { ran.emplace_back("other"); });
  loop.Freeze();
  scheduler.RunFor(absl::Seconds(5));
  EXPECT_THAT(ran, ElementsAre("other"));
  EXPECT_EQ(scheduler.Now(), absl::UnixEpoch() + absl::Seconds(5));
  loop.Thaw();
  scheduler.RunFor(absl::ZeroDuration());
  EXPECT_THAT(ran, ElementsAre("other", "first", "third", "posted"));
  EXPECT_EQ(scheduler.Now(), absl::UnixEpoch() + absl::Seconds(5));
  scheduler.RunUntilIdle();
  EXPECT_EQ(ran.back(), "later");
  EXPECT_EQ(scheduler.Now(), absl::UnixEpoch() + absl::Seconds(9));
}

TEST(SimLoop, StoppingDropsWhatItsNodePlannedAndNothingElse) {
  SimScheduler scheduler;
  SimLoop other(scheduler);
  auto loop = std::make_unique<SimLoop>(scheduler);
  const auto held = std::make_shared<int>(1);
  int ran = 0;
  loop->Post([held, &ran] { ran += 1; });
  loop->After(absl::Seconds(1), [held, &ran] { ran += 10; });
  loop->Run([held, &ran] { ran += 100; }, [] {});
  other.Post([&ran] { ran += 1000; });
  EXPECT_EQ(held.use_count(), 4);
  loop->Stop();
  EXPECT_EQ(held.use_count(), 1);  // destroyed without running
  loop->Post([&ran] { ran += 1; });
  loop->After(absl::Seconds(1), [&ran] { ran += 1; });
  scheduler.RunUntilIdle();
  EXPECT_EQ(ran, 1000);
}

TEST(SimLoop, WorkRunsInOrderThenItsDone) {
  SimScheduler scheduler;
  SimLoop loop(scheduler);
  loop.set_worker_delay(absl::Seconds(2));
  std::vector<std::string> ran;
  loop.Run([&] { ran.push_back("work 1"); }, [&] { ran.push_back("done 1"); });
  loop.Run([&] { ran.push_back("work 2"); }, [&] { ran.push_back("done 2"); });
  EXPECT_TRUE(ran.empty());
  scheduler.RunFor(absl::Seconds(2));
  EXPECT_THAT(ran, ElementsAre("work 1", "done 1"));
  scheduler.RunFor(absl::Seconds(2));
  EXPECT_THAT(ran, ElementsAre("work 1", "done 1", "work 2", "done 2"));
}

}  // namespace
}  // namespace dfl::simports
