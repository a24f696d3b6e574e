#include "daemon/base/rng.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace dfl {
namespace {

// Pinned: these bits are part of the wire contract (coordinates are named by a
// seed) and of every recorded run.
TEST(Rng, StreamIsPinned) {
  Rng rng(1);
  const std::array<uint64_t, 3> got = {rng.Next(), rng.Next(), rng.Next()};
  Rng again(1);
  EXPECT_EQ(got[0], again.Next());
  EXPECT_EQ(got[0], 0xB3F2AF6D0FC710C5ULL);
  EXPECT_EQ(got[1], 0x853B559647364CEAULL);
  EXPECT_EQ(got[2], 0x92F89756082A4514ULL);
}

TEST(Rng, ForksAreIndependentOfEachOtherAndLeaveTheParent) {
  Rng parent(5);
  Rng a = parent.Fork("neighbours");
  Rng b = parent.Fork("coordinates");
  EXPECT_NE(a.Next(), b.Next());
  Rng untouched(5);
  EXPECT_EQ(parent.Next(), untouched.Next());
}

TEST(Rng, BelowIsUniform) {
  Rng rng(11);
  std::array<int, 7> counts{};
  constexpr int kDraws = 70000;
  for (int i = 0; i < kDraws; ++i) ++counts[rng.Below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 400);
}

TEST(Rng, ShuffleIsAPermutation) {
  std::vector<int> values(100);
  std::iota(values.begin(), values.end(), 0);
  Rng rng(3);
  rng.Shuffle(absl::MakeSpan(values));
  EXPECT_FALSE(std::is_sorted(values.begin(), values.end()));
  std::sort(values.begin(), values.end());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(values[i], i);
}

TEST(DeriveSeed, DependsOnLabelNumbersAndOrder) {
  EXPECT_NE(DeriveSeed(1, "a"), DeriveSeed(1, "b"));
  EXPECT_NE(DeriveSeed(1, "a", 1, 2), DeriveSeed(1, "a", 2, 1));
  EXPECT_NE(DeriveSeed(1, "a", 1), DeriveSeed(2, "a", 1));
}

}  // namespace
}  // namespace dfl
