#include "daemon/config/values.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::config {
namespace {

TEST(Values, SizesTakeBinaryAndDecimalUnits) {
  EXPECT_EQ(ReadSize("4096"), 4096u);
  EXPECT_EQ(ReadSize("64MiB"), uint64_t{64} << 20);
  EXPECT_EQ(ReadSize("64 MiB"), uint64_t{64} << 20);
  EXPECT_EQ(ReadSize("2GB"), 2000000000u);
  EXPECT_EQ(ReadSize("1TiB"), uint64_t{1} << 40);
  for (const char* wrong :
       {"", "MiB", "-1", "-0", "1.5GiB", "64mib", "1 2",
        "18446744073709551615B1", "17179869184GiB", "1e3"}) {
    EXPECT_EQ(ReadSize(wrong), std::nullopt) << wrong;
  }
}

TEST(Values, HoursMayGoOverMidnight) {
  const auto day = ReadHours("08:30-17:00");
  ASSERT_TRUE(day.has_value());
  EXPECT_TRUE(day->Hold(8 * 60 + 30));
  EXPECT_FALSE(day->Hold(17 * 60));
  const auto night = ReadHours("22:00-06:00");
  ASSERT_TRUE(night.has_value());
  EXPECT_TRUE(night->Hold(23 * 60));
  EXPECT_TRUE(night->Hold(0));
  EXPECT_FALSE(night->Hold(6 * 60));
  EXPECT_FALSE(night->Hold(12 * 60));
  for (const char* wrong :
       {"", "22-06", "22:00", "24:00-06:00", "22:60-06:00", "22:00-22:00",
        "2:00-06:00", "22:00-06:00 ", "22.00-06.00", "a2:00-06:00"}) {
    EXPECT_FALSE(ReadHours(wrong).has_value()) << wrong;
  }
}

TEST(Values, SizesReadBack) {
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{1536},
        uint64_t{64} << 20, uint64_t{4} << 30,
        std::numeric_limits<uint64_t>::max()}) {
    EXPECT_EQ(ReadSize(WriteSize(size)), size);
  }
  EXPECT_EQ(WriteSize(uint64_t{4} << 30), "4GiB");
}

TEST(Values, DurationsReadBackAndAreShort) {
  EXPECT_EQ(WriteDuration(absl::Minutes(90)), "1h30m");
  EXPECT_EQ(WriteDuration(absl::Hours(2)), "2h");
  EXPECT_EQ(WriteDuration(absl::Minutes(10)), "10m");
  EXPECT_EQ(WriteDuration(absl::Milliseconds(500)), "500ms");
  EXPECT_EQ(WriteDuration(absl::Seconds(20)), "20s");
  EXPECT_EQ(WriteDuration(absl::ZeroDuration()), "0");
  for (const absl::Duration time :
       {absl::Minutes(90), absl::Hours(100), absl::Hours(10) + absl::Seconds(1),
        absl::Nanoseconds(1) / 4, absl::InfiniteDuration(), absl::Seconds(0.1),
        absl::Hours(1) + absl::Seconds(30), absl::ZeroDuration()}) {
    EXPECT_EQ(ReadDuration(WriteDuration(time)), time) << WriteDuration(time);
  }
  EXPECT_EQ(ReadDuration("2"), std::nullopt);
  EXPECT_EQ(ReadDuration("2 s"), std::nullopt);
}

TEST(Values, NumbersReadBackExactly) {
  for (const double value : {0.1, 1.0 / 3, 5.0, 1e-300, -2.5, 1.0005,
                             std::numeric_limits<double>::max()}) {
    EXPECT_EQ(ReadNumber(WriteNumber(value)), value);
  }
  EXPECT_EQ(ReadNumber("nan"), std::nullopt);
  EXPECT_EQ(ReadNumber("inf"), std::nullopt);
  EXPECT_EQ(ReadNumber("1e999"), std::nullopt);
  EXPECT_EQ(ReadUnsigned("18446744073709551615"),
            std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(ReadUnsigned("18446744073709551616"), std::nullopt);
  EXPECT_EQ(ReadInteger("1.0"), std::nullopt);
}

TEST(Values, MistakesReportTheFirstTenTogether) {
  Mistakes mistakes;
  EXPECT_TRUE(mistakes.ToStatus().ok());
  for (int i = 1; i <= 12; ++i) mistakes.Add("mistake " + std::to_string(i));
  const std::string text(mistakes.ToStatus().message());
  EXPECT_THAT(text, testing::HasSubstr("mistake 1\nmistake 2\n"));
  EXPECT_THAT(text, testing::EndsWith("mistake 10\n... and 2 more"));
}

TEST(Values, MistakesThatNobodyWillSeeAreToldApart) {
  Mistakes mistakes;
  for (size_t i = 0; i < Mistakes::kReported; ++i) {
    EXPECT_FALSE(mistakes.full());
    mistakes.Add("mistake");
  }
  EXPECT_TRUE(mistakes.full());
  EXPECT_EQ(std::string(mistakes.ToStatus().message()).find("more"),
            std::string::npos);
}

}  // namespace
}  // namespace dfl::config
