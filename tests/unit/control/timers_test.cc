#include "daemon/control/timers.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/synchronization/notification.h"

namespace dfl::control {
namespace {

TEST(Timers, RunInTheOrderOfTheirTimes) {
  Timers timers;
  std::vector<int> order;
  absl::Notification done;
  timers.After(absl::Milliseconds(30), [&] {
    order.push_back(3);
    done.Notify();
  });
  timers.After(absl::Milliseconds(10), [&] { order.push_back(2); });
  timers.After(absl::ZeroDuration(), [&] { order.push_back(1); });
  done.WaitForNotification();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Timers, ATaskMayAddAnother) {
  Timers timers;
  absl::Notification done;
  timers.After(absl::ZeroDuration(), [&] {
    timers.After(absl::Milliseconds(1), [&] { done.Notify(); });
  });
  done.WaitForNotification();
}

TEST(Timers, WhatIsCancelledOrLeftAtTheEndNeverRuns) {
  bool ran = false;
  {
    Timers timers;
    timers.Cancel(timers.After(absl::Milliseconds(5), [&] { ran = true; }));
    timers.After(absl::Hours(1), [&] { ran = true; });
    absl::Notification later;
    timers.After(absl::Milliseconds(20), [&] { later.Notify(); });
    later.WaitForNotification();
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace dfl::control
