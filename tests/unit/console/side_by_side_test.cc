#include "daemon/console/side_by_side.h"

#include <gtest/gtest.h>

#include <vector>

namespace dfl::console {
namespace {

TEST(SideBySide, DoesEveryPieceOnceWhateverTheNumberOfThreads) {
  for (const size_t jobs : {1, 2, 7, 200}) {
    std::vector<int> done(100, 0);
    SideBySide(
        done.size(), jobs, [&](size_t i) { ++done[i]; }, [] { return true; });
    EXPECT_EQ(done, std::vector<int>(100, 1)) << jobs;
  }
  EXPECT_GE(Processors(), 1U);
}

TEST(SideBySide, BeginsNoneOnceItIsToldToEnd) {
  Turnstile turnstile;
  size_t begun = 0;
  SideBySide(
      100, 3, [&](size_t) { turnstile([&] { ++begun; }); },
      [&] { return turnstile([&] { return begun < 10; }); });
  // Each of the others may have asked before the tenth was counted.
  EXPECT_GE(begun, 10U);
  EXPECT_LE(begun, 12U);
}

}  // namespace
}  // namespace dfl::console
