// Products in float32, bit for bit as three loops would make them.
#include "daemon/learner/plain/matrix.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "gtest/gtest.h"

namespace dfl::learner {
namespace {

std::vector<float> Random(int64_t size, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(size));
  for (float& value : values) {
    value = static_cast<float>(2 * rng.Uniform() - 1);
  }
  return values;
}

std::vector<float> Naive(int64_t m, int64_t n, int64_t k,
                         const std::vector<float>& a,
                         const std::vector<float>& b) {
  std::vector<float> c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t t = 0; t < k; ++t) {
        sum += a[static_cast<size_t>(i * k + t)] *
               b[static_cast<size_t>(t * n + j)];
      }
      c[static_cast<size_t>(i * n + j)] = sum;
    }
  }
  return c;
}

std::vector<float> Transposed(const std::vector<float>& from, int64_t rows,
                              int64_t columns) {
  std::vector<float> to(from.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      to[static_cast<size_t>(j * rows + i)] =
          from[static_cast<size_t>(i * columns + j)];
    }
  }
  return to;
}

TEST(Multiplier, GivesTheBitsOfThreeLoops) {
  Multiplier multiplier;
  // Sizes around those of tiles (4) and panels (16), large ones first, so that
  // what they left in memory is there for the small ones.
  for (const int64_t m : {9, 4, 3, 1}) {
    for (const int64_t n : {33, 16, 15, 1}) {
      for (const int64_t k : {70, 1}) {
        SCOPED_TRACE(absl::StrCat(m, " x ", n, " over ", k));
        const std::vector<float> a = Random(m * k, 1);
        const std::vector<float> b = Random(k * n, 2);
        const std::vector<float> expected = Naive(m, n, k, a, b);
        std::vector<float> c(expected.size(), 7);
        multiplier.Multiply(m, n, k, {a.data(), k, 1}, {b.data(), n, 1},
                            {c.data(), n, 1});
        EXPECT_EQ(c, expected);
        const std::vector<float> a_down = Transposed(a, m, k);
        const std::vector<float> b_down = Transposed(b, k, n);
        std::vector<float> c_down(expected.size(), 7);
        multiplier.Multiply(m, n, k, {a_down.data(), 1, m},
                            {b_down.data(), 1, k}, {c_down.data(), 1, m});
        EXPECT_EQ(c_down, Transposed(expected, m, n));
      }
    }
  }
}

TEST(Multiplier, OfNothingIsZero) {
  Multiplier multiplier;
  std::vector<float> c(6, 7);
  const float none = 1;
  multiplier.Multiply(2, 3, 0, {&none, 0, 1}, {&none, 3, 1}, {c.data(), 3, 1});
  EXPECT_EQ(c, std::vector<float>(6, 0));
}

}  // namespace
}  // namespace dfl::learner
