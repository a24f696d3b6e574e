#include "daemon/enrol/wrong_secrets.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace dfl::enrol {
namespace {

constexpr absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

TEST(WrongSecrets, BoundsAHostForAMinuteAndNoOther) {
  WrongSecrets wrong;
  for (int i = 0; i < WrongSecrets::kPerPeriod; ++i) {
    EXPECT_TRUE(wrong.MayAsk("192.0.2.7", kNow));
    wrong.Count("192.0.2.7", kNow);
  }
  EXPECT_FALSE(wrong.MayAsk("192.0.2.7", kNow));
  EXPECT_TRUE(wrong.MayAsk("192.0.2.8", kNow));
  EXPECT_TRUE(wrong.MayAsk("192.0.2.7", kNow + WrongSecrets::kPeriod));
  wrong.Count("192.0.2.7", kNow + WrongSecrets::kPeriod);
  EXPECT_TRUE(wrong.MayAsk("192.0.2.7", kNow + WrongSecrets::kPeriod));
}

TEST(WrongSecrets, ForgetsTheOldestOfTooManyHosts) {
  WrongSecrets wrong;
  for (int i = 0; i < WrongSecrets::kPerPeriod; ++i) {
    wrong.Count("first", kNow);
    wrong.Count("second", kNow + absl::Seconds(1));
  }
  for (size_t i = 0; i < WrongSecrets::kMaxHosts - 1; ++i) {
    wrong.Count(absl::StrCat("host-", i), kNow + absl::Seconds(2));
  }
  EXPECT_TRUE(wrong.MayAsk("first", kNow + absl::Seconds(3)));
  EXPECT_FALSE(wrong.MayAsk("second", kNow + absl::Seconds(3)));
}

TEST(WrongSecrets, TellsTheHostOfAPeer) {
  EXPECT_EQ(HostOfPeer("ipv4:192.0.2.7:41234"), "192.0.2.7");
  EXPECT_EQ(HostOfPeer("ipv6:[2001:db8::7]:41234"), "[2001:db8::7]");
  EXPECT_EQ(HostOfPeer("unix:"), "unix:");
}

}  // namespace
}  // namespace dfl::enrol
