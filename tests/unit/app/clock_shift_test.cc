// A wall clock that is set while the daemon runs. This program's own
// clock_gettime takes the place of the system's, so that every library in it
// sees the wall clock of the test, while the kernel waits by the true one.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/app/event_loop.h"
#include "daemon/control/timers.h"
#include "daemon/threads/steady_cond_var.h"
#include "gtest/gtest.h"

namespace {

std::atomic<int64_t> g_shift_seconds{0};

}  // namespace

extern "C" int ShiftedClock(clockid_t clock,
                            timespec* now) __asm__("clock_gettime");
extern "C" int ShiftedClock(clockid_t clock, timespec* now) {
  const long failed = syscall(SYS_clock_gettime, clock, now);
  if (failed == 0 && clock == CLOCK_REALTIME) now->tv_sec += g_shift_seconds;
  return static_cast<int>(failed);
}

namespace dfl {
namespace {

constexpr auto kLimit = std::chrono::milliseconds(1300);
constexpr absl::Duration kDelay = absl::Milliseconds(300);

class ClockShift : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    const absl::Time before = absl::Now();
    g_shift_seconds = GetParam();
    if (absl::AbsDuration(absl::Now() - before) < absl::Minutes(30)) {
      GTEST_SKIP() << "the clock of this build cannot be set by a test";
    }
  }
  void TearDown() override { g_shift_seconds = 0; }
};

// Never late by more than a second, and never early.
void ExpectInTime(std::future<void> ran, absl::Time began) {
  ASSERT_EQ(ran.wait_for(kLimit), std::future_status::ready);
  EXPECT_GE(SteadyNow() - began, kDelay);
}

TEST_P(ClockShift, MovesNoTimerOfTheLoop) {
  auto* ran = new std::promise<void>();  // outlives a loop that hangs
  std::future<void> future = ran->get_future();
  auto* loop = new app::EventLoop("test");
  const absl::Time began = SteadyNow();
  loop->Post([loop, ran] { loop->After(kDelay, [ran] { ran->set_value(); }); });
  ExpectInTime(std::move(future), began);
  if (HasFailure()) return;  // its destructor would wait as long
  delete loop;
  delete ran;
}

TEST_P(ClockShift, MovesNoTimerOfControl) {
  auto* ran = new std::promise<void>();
  std::future<void> future = ran->get_future();
  auto* timers = new control::Timers();
  const absl::Time began = SteadyNow();
  timers->After(kDelay, [ran] { ran->set_value(); });
  ExpectInTime(std::move(future), began);
  if (HasFailure()) return;
  delete timers;
  delete ran;
}

TEST_P(ClockShift, MovesNoWaitWithALimit) {
  absl::Mutex mutex;
  SteadyCondVar changed;
  const absl::Time began = SteadyNow();
  const absl::MutexLock lock(&mutex);
  while (SteadyNow() - began < kDelay) {
    changed.WaitFor(&mutex, kDelay - (SteadyNow() - began));
  }
  EXPECT_LT(SteadyNow() - began, absl::FromChrono(kLimit));
}

INSTANTIATE_TEST_SUITE_P(ByAnHour, ClockShift, testing::Values(3600, -3600),
                         [](const auto& tested) {
                           return tested.param > 0 ? "Ahead" : "Back";
                         });

}  // namespace
}  // namespace dfl
