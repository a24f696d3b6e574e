#include "daemon/runtime/membership/preset.h"

#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

using ports::Pace;

TEST(Preset, TheMorePatientPaceIsMorePatientInAll) {
  EXPECT_EQ(MorePatient(Pace::kLan, Pace::kWan), Pace::kWan);
  EXPECT_EQ(MorePatient(Pace::kCellular, Pace::kWan), Pace::kCellular);
  for (const auto& [a, b] : {std::pair(Pace::kLan, Pace::kWan),
                             std::pair(Pace::kWan, Pace::kCellular)}) {
    const Preset& quick = PresetOf(a);
    const Preset& slow = PresetOf(b);
    EXPECT_LT(quick.period, slow.period);
    EXPECT_LT(quick.probe_timeout, slow.probe_timeout);
    EXPECT_LT(quick.indirect_timeout, slow.indirect_timeout);
    EXPECT_LT(quick.suspicion, slow.suspicion);
    EXPECT_LT(quick.batch, slow.batch);
    EXPECT_LT(quick.forget, slow.forget);
  }
}

TEST(Preset, SuspicionsGrowWithTheNetworkAndShrinkWithConfirmations) {
  const Preset& lan = PresetOf(Pace::kLan);
  EXPECT_EQ(LeastSuspicion(lan, 1), absl::Milliseconds(1200));
  EXPECT_EQ(LeastSuspicion(lan, 10), absl::Milliseconds(1200));
  EXPECT_NEAR(absl::ToDoubleSeconds(LeastSuspicion(lan, 1000)), 3.6, 1e-6);
  const absl::Duration least = absl::Seconds(2);
  EXPECT_EQ(SuspicionTime(least, 0), absl::Seconds(6));
  EXPECT_NEAR(absl::ToDoubleSeconds(SuspicionTime(least, 1)), 4, 1e-6);
  EXPECT_NEAR(absl::ToDoubleSeconds(SuspicionTime(least, 3)), 2, 1e-6);
  EXPECT_EQ(SuspicionTime(least, 50), least);
}

}  // namespace
}  // namespace dfl::runtime
