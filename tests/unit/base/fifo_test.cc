#include "daemon/base/fifo.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>

#include "daemon/base/rng.h"

namespace dfl {
namespace {

TEST(Fifo, GivesBackInTheOrderOfADeque) {
  Fifo<std::unique_ptr<int64_t>> fifo;
  std::deque<int64_t> expected;
  Rng rng(1);
  for (int64_t i = 0; i < 20'000; ++i) {
    // It grows to about a thousand and shrinks again.
    if (expected.empty() || rng.Uniform() < (i % 4000 < 2000 ? 0.75 : 0.25)) {
      fifo.push(std::make_unique<int64_t>(i));
      expected.push_back(i);
    } else {
      ASSERT_EQ(*fifo.front(), expected.front());
      ASSERT_EQ(*fifo.pop(), expected.front());
      expected.pop_front();
    }
    ASSERT_EQ(fifo.size(), expected.size());
    ASSERT_EQ(fifo.empty(), expected.empty());
  }
}

TEST(Fifo, IsEmptyOnceItIsCleared) {
  Fifo<int> fifo;
  for (int i = 0; i < 100; ++i) fifo.push(i);
  fifo.pop();
  fifo.clear();
  EXPECT_TRUE(fifo.empty());
  fifo.push(7);
  EXPECT_EQ(fifo.pop(), 7);
}

}  // namespace
}  // namespace dfl
