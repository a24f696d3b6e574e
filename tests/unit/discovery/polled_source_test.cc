#include "daemon/discovery/polled_source.h"

#include <atomic>
#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"
#include "tests/unit/discovery/told.h"

namespace dfl::discovery {
namespace {

using ::testing::Lt;

constexpr PollPeriods kFast = {absl::Milliseconds(1), absl::Milliseconds(1)};
constexpr PollPeriods kNever = {absl::Hours(1), absl::Hours(1)};

TEST(PolledSource, TellsWhatEachLookHasFound) {
  auto looks = std::make_shared<std::atomic<int>>(0);
  Told told;
  PolledSource source(
      "numbers",
      [looks] {
        return Findings{{std::to_string(looks->fetch_add(1)) + ":1"}, ""};
      },
      kFast);
  EXPECT_EQ(source.name(), "numbers");
  source.Start(told.tell());
  EXPECT_TRUE(told.Becomes([](const Findings& findings) {
    return findings.addresses == std::vector<std::string>{"5:1"} ||
           findings.addresses == std::vector<std::string>{"6:1"} ||
           findings.addresses[0].size() > 3;
  }));
  source.Stop();
  const int times = told.times();
  source.Stop();
  EXPECT_EQ(told.times(), times);
}

TEST(PolledSource, LooksAtOnceWhenItIsAskedTo) {
  auto looks = std::make_shared<std::atomic<int>>(0);
  Told told;
  PolledSource source(
      "slow",
      [looks] {
        looks->fetch_add(1);
        return Findings();
      },
      kNever);
  source.Start(told.tell());
  EXPECT_TRUE(told.Becomes([](const Findings&) { return true; }));
  source.LookNow();
  EXPECT_TRUE(testing_support::Eventually(absl::Seconds(20),
                                          [&] { return looks->load() == 2; }));
}

TEST(PolledSource, TroubleIsLookedAtSooner) {
  auto looks = std::make_shared<std::atomic<int>>(0);
  Told told;
  PolledSource source("troubled",
                      [looks] {
                        looks->fetch_add(1);
                        return Findings{{}, "nobody answers"};
                      },
                      {absl::Hours(1), absl::Milliseconds(1)});
  source.Start(told.tell());
  EXPECT_TRUE(testing_support::Eventually(absl::Seconds(20),
                                          [&] { return looks->load() > 3; }));
  EXPECT_EQ(told.last().trouble, "nobody answers");
}

// A resolver that hangs must hold up no shutdown.
TEST(PolledSource, ALookThatHangsIsLeftBehind) {
  auto began = std::make_shared<absl::Notification>();
  auto go_on = std::make_shared<absl::Notification>();
  auto over = std::make_shared<std::atomic<bool>>(false);
  Told told;
  const absl::Time start = testing_support::SteadyNow();
  {
    PolledSource source("hangs", [began, go_on, over] {
      began->Notify();
      go_on->WaitForNotification();
      over->store(true);
      return Findings{{"late:1"}, ""};
    });
    source.Start(told.tell());
    began->WaitForNotification();
    source.Stop();
  }
  EXPECT_THAT(testing_support::SteadyNow() - start, Lt(absl::Seconds(5)));
  go_on->Notify();
  EXPECT_TRUE(testing_support::Eventually(absl::Seconds(20),
                                          [&] { return over->load(); }));
  EXPECT_EQ(told.times(), 0);
}

TEST(PolledSource, OneThatWasStoppedDoesNotStart) {
  Told told;
  PolledSource source("stopped", [] { return Findings(); }, kFast);
  source.Stop();
  source.Start(told.tell());
  source.Stop();
  EXPECT_EQ(told.times(), 0);
}

}  // namespace
}  // namespace dfl::discovery
