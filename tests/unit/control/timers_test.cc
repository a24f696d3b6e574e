#include "daemon/control/timers.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace dfl::control {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

TEST(Timers, RunInTheOrderOfTheirTimes) {
  std::vector<int> order;
  absl::Notification done;
  Timers timers;
  timers.After(absl::Milliseconds(30), [&] {
    order.push_back(3);
    done.Notify();
  });
  timers.After(absl::Milliseconds(10), [&] { order.push_back(2); });
  timers.After(absl::ZeroDuration(), [&] { order.push_back(1); });
  ASSERT_TRUE(done.WaitForNotificationWithTimeout(kPatience));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Timers, ATaskMayAddAnother) {
  absl::Notification done;
  Timers timers;
  timers.After(absl::ZeroDuration(), [&] {
    timers.After(absl::Milliseconds(1), [&] { done.Notify(); });
  });
  EXPECT_TRUE(done.WaitForNotificationWithTimeout(kPatience));
}

TEST(Timers, WhatIsCancelledOrLeftAtTheEndNeverRuns) {
  bool ran = false;
  {
    absl::Notification later;
    Timers timers;
    timers.Cancel(timers.After(absl::Milliseconds(5), [&] { ran = true; }));
    timers.After(absl::Hours(1), [&] { ran = true; });
    timers.After(absl::Milliseconds(20), [&] { later.Notify(); });
    EXPECT_TRUE(later.WaitForNotificationWithTimeout(kPatience));
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace dfl::control
