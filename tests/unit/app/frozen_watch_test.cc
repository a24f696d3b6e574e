#include "daemon/app/service/frozen_watch.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(5);

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

// Trains `count` gradients of `seconds` each from `start` on.
double Train(FrozenWatch& watch, double start, int count, double seconds) {
  for (int i = 0; i < count; ++i) {
    watch.Begin(At(start));
    start += seconds;
    watch.End(At(start), /*is_gradient=*/true);
  }
  return start;
}

TEST(FrozenWatch, WhoHasNothingToDoIsNotFrozen) {
  FrozenWatch watch;
  EXPECT_FALSE(watch.Look(At(1e6), kPatience).has_value());
  const double end = Train(watch, 0, 3, 1);
  EXPECT_FALSE(watch.Look(At(end + 1e6), kPatience).has_value());
}

TEST(FrozenWatch, AnyGradientHasThePatience) {
  FrozenWatch watch;
  const double end = Train(watch, 0, 10, 0.1);
  watch.Begin(At(end));
  EXPECT_FALSE(watch.Look(At(end + 299), kPatience).has_value());
  const auto frozen = watch.Look(At(end + 301), kPatience);
  ASSERT_TRUE(frozen.has_value());
  EXPECT_NEAR(absl::ToDoubleSeconds(frozen->since), 301, 1e-6);
  EXPECT_NEAR(absl::ToDoubleSeconds(frozen->usual), 0.1, 1e-6);
  // Over as soon as it is.
  watch.End(At(end + 302), true);
  EXPECT_FALSE(watch.Look(At(end + 400), kPatience).has_value());
}

TEST(FrozenWatch, SlowGradientsHaveTwentyTimesTheMedian) {
  FrozenWatch watch;
  double end = Train(watch, 0, 8, 60);
  end = Train(watch, end, 2, 4000);  // the mean would be 848 s
  watch.Begin(At(end));
  EXPECT_FALSE(watch.Look(At(end + 1199), kPatience).has_value());
  EXPECT_TRUE(watch.Look(At(end + 1201), kPatience).has_value());
}

TEST(FrozenWatch, TheMedianIsOfTheNewestGradients) {
  FrozenWatch watch;
  double end = Train(watch, 0, 200, 60);
  end = Train(watch, end, FrozenWatch::kRemembered, 1);
  watch.Begin(At(end));
  EXPECT_TRUE(watch.Look(At(end + 301), kPatience).has_value());
}

TEST(FrozenWatch, TheFirstGradientHasThePatienceAlone) {
  FrozenWatch watch;
  watch.Begin(At(0));
  EXPECT_FALSE(watch.Look(At(300), kPatience).has_value());
  const auto frozen = watch.Look(At(301), kPatience);
  ASSERT_TRUE(frozen.has_value());
  EXPECT_EQ(frozen->usual, absl::ZeroDuration());
}

// An evaluation of as many rows as 100 mini-batches have.
TEST(FrozenWatch, LongWorkHasMorePatienceAndIsNoMeasure) {
  FrozenWatch watch;
  double end = Train(watch, 0, 10, 1);
  watch.Begin(At(end), /*steps=*/100);
  EXPECT_FALSE(watch.Look(At(end + 1999), kPatience).has_value());
  EXPECT_TRUE(watch.Look(At(end + 2001), kPatience).has_value());
  end += 3000;
  watch.End(At(end), /*is_gradient=*/false);
  watch.Begin(At(end));
  EXPECT_TRUE(watch.Look(At(end + 301), kPatience).has_value());
}

TEST(FrozenWatch, WorkThatWaitsForItsTurnIsNotFrozen) {
  FrozenWatch watch;
  double end = Train(watch, 0, 10, 1);
  watch.Begin(At(end), /*steps=*/100);
  watch.Begin(At(end));  // behind it
  end += 1000;
  watch.End(At(end), /*is_gradient=*/false);
  EXPECT_FALSE(watch.Look(At(end + 299), kPatience).has_value());
  EXPECT_TRUE(watch.Look(At(end + 301), kPatience).has_value());
}

TEST(FrozenWatch, NoPatienceIsNeeded) {
  FrozenWatch watch;
  watch.Begin(At(0));
  EXPECT_FALSE(watch.Look(At(1e9), absl::InfiniteDuration()).has_value());
}

}  // namespace
}  // namespace dfl::app
