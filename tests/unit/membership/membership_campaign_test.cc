// The full numbers of membership_test.cc's scenarios. Takes minutes.
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/membership/scenarios.h"

namespace dfl::runtime {
namespace {

using ::testing::IsEmpty;

TEST(MembershipCampaign, TenThousandTimesTwoSeedsMakeOneComponent) {
  for (uint64_t seed = 1; seed <= 10'000; ++seed) {
    ASSERT_TRUE(TwoSeedsMakeOneComponent(64, seed)) << "seed " << seed;
  }
}

TEST(MembershipCampaign, HalfAnHourOfWanWeather) {
  WanWeather weather(256, 1);
  const WanResult result = weather.Run(absl::Minutes(30));
  EXPECT_TRUE(result.formed);
  EXPECT_THAT(result.losses, IsEmpty());
  EXPECT_LE(result.detection, absl::Seconds(60));
}

TEST(MembershipCampaign, AThousandIdleNodesSayLittle) {
  EXPECT_LE(IdleBytesPerSecond(1000, absl::Minutes(1)), 2000);
}

}  // namespace
}  // namespace dfl::runtime
