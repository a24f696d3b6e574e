// Every instruction set of this machine mixes to the same bits.
#include "daemon/core/vector/flat_kernels.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "daemon/base/rng.h"
#include "gtest/gtest.h"
#include "tests/support/each_target.h"

namespace dfl::core {
namespace {

std::string Bytes(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

struct Sums {
  std::vector<float> own;
  std::vector<float> sum;
  std::vector<int32_t> counts;
};

// With places where nothing came, where zeros of either sign did, and counts
// up to 300.
Sums Assorted(size_t size) {
  Rng rng(size + 1);
  Sums sums;
  for (size_t i = 0; i < size; ++i) {
    const bool came = rng.Bernoulli(0.4);
    sums.own.push_back(
        rng.Bernoulli(0.1) ? -0.0F : static_cast<float>(rng.Uniform() - 0.5));
    float sum = came ? static_cast<float>(rng.Uniform() - 0.5) : 0.0F;
    if (came && rng.Bernoulli(0.2)) sum = -0.0F;
    sums.sum.push_back(sum);
    sums.counts.push_back(
        came ? static_cast<int32_t>(1 + rng.Below(rng.Bernoulli(0.5) ? 3 : 300))
             : 0);
  }
  return sums;
}

TEST(FlatKernels, MeansAreThoseOfOneValueAtATime) {
  for (size_t size = 0; size < 150; ++size) {
    const Sums sums = Assorted(size);
    std::vector<float> expected = sums.own;
    for (size_t i = 0; i < size; ++i) {
      if (sums.counts[i] == 0) continue;
      const float mean = sums.sum[i] / static_cast<float>(sums.counts[i]);
      if (mean != 0) expected[i] += mean;
    }
    ForEachTarget([&] {
      Sums mixed = sums;
      kernels::AddMeans(mixed.sum.data(), mixed.counts.data(), size,
                        mixed.own.data());
      EXPECT_EQ(Bytes(mixed.own), Bytes(expected)) << size;
      for (size_t i = 0; i < size; ++i) {
        EXPECT_EQ(mixed.sum[i], 0) << i << " of " << size;
        EXPECT_EQ(mixed.counts[i], 0) << i << " of " << size;
      }
    });
  }
}

TEST(FlatKernels, SumsAreThoseOfOneValueAtATime) {
  for (size_t size = 0; size < 150; ++size) {
    const Sums sums = Assorted(size);
    std::vector<float> expected = sums.own;
    for (size_t i = 0; i < size; ++i) {
      if (sums.sum[i] != 0) expected[i] += sums.sum[i];
    }
    ForEachTarget([&] {
      Sums mixed = sums;
      kernels::AddSums(mixed.sum.data(), size, mixed.own.data());
      EXPECT_EQ(Bytes(mixed.own), Bytes(expected)) << size;
      for (size_t i = 0; i < size; ++i) {
        EXPECT_EQ(mixed.sum[i], 0) << i << " of " << size;
      }
    });
  }
}

}  // namespace
}  // namespace dfl::core
