// The value format `mod`: what holds beyond the bytes that golden vectors pin.
#include "daemon/core/vector/mod_code.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "daemon/base/rng.h"
#include "gtest/gtest.h"

namespace dfl::core {
namespace {

std::vector<float> Normal(Rng& rng, int64_t n, double width) {
  std::vector<float> values;
  for (int64_t l = 0; l < n; ++l) {
    double sum = -6;
    for (int q = 0; q < 12; ++q) sum += rng.Uniform();
    values.push_back(static_cast<float>(width * sum));
  }
  return values;
}

std::vector<float> Plus(const std::vector<float>& a,
                        const std::vector<float>& b) {
  std::vector<float> sum = a;
  for (size_t l = 0; l < a.size(); ++l) sum[l] += b[l];
  return sum;
}

std::vector<BlockScale> AllAt(const ModSpec& spec, int64_t n, uint8_t e) {
  return std::vector<BlockScale>(static_cast<size_t>(ModBlocks(spec, n)),
                                 {e, 0});
}

TEST(ModCode, ScalesAreAnEighthOfAnOctaveApart) {
  EXPECT_EQ(ModScale(0), 0);
  EXPECT_EQ(ModScale(192), 1);
  EXPECT_EQ(ModScale(200), 2);
  EXPECT_EQ(ModScaleCode(0), 0);
  EXPECT_EQ(ModScaleCode(1e-60), 1);
  EXPECT_EQ(ModScaleCode(1e60), 255);
  EXPECT_EQ(ModScaleCode(std::numeric_limits<double>::infinity()), 255);
  for (int e = 1; e <= 255; ++e) {
    const double sigma = ModScale(static_cast<uint8_t>(e));
    EXPECT_EQ(ModScaleCode(sigma * sigma), e);
    // A sixteenth of an octave up or down is still nearest.
    EXPECT_EQ(ModScaleCode(sigma * sigma * 1.08), e);
    EXPECT_EQ(ModScaleCode(sigma * sigma / 1.08), e);
  }
}

TEST(ModCode, EqualVectorsAreAFixedPoint) {
  Rng rng(3);
  for (const int modulus : {4, 6, 7, 8, 255, 256}) {
    ModSpec spec;
    spec.modulus = modulus;
    const std::vector<float> x = Normal(rng, 900, 1);
    std::vector<BlockScale> scales = AllAt(spec, 900, 150);
    const ModAnswer answer = ReadMod(WriteMod(spec, x, scales, rng.Next()), x,
                                     absl::MakeSpan(scales));
    for (const float d : ModDifference(answer)) EXPECT_EQ(d, 0);
    for (const BlockScale& scale : scales) EXPECT_EQ(scale.refusals, 0);
  }
}

// E d^ = x - x_own, with the variance that the theory page says.
TEST(ModCode, DifferencesAreUnbiased) {
  Rng rng(5);
  constexpr int64_t kLength = 256;
  constexpr int kSeeds = 4000;
  ModSpec spec;
  const std::vector<float> own = Normal(rng, kLength, 1);
  const std::vector<float> x = Plus(own, Normal(rng, kLength, 0.1));
  const uint8_t e = ModScaleCode(0.0225);  // so that nothing wraps
  std::vector<double> mean(kLength, 0.0);
  double squares = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    std::vector<BlockScale> scales = AllAt(spec, kLength, e);
    const ModAnswer answer = ReadMod(WriteMod(spec, x, scales, rng.Next()), own,
                                     absl::MakeSpan(scales));
    EXPECT_EQ(answer.refused[0], 0);
    const FlatVector d = ModDifference(answer);
    for (int64_t l = 0; l < kLength; ++l) {
      mean[l] += d[l] / static_cast<double>(kSeeds);
      const double error = d[l] - (static_cast<double>(x[l]) - own[l]);
      squares += error * error / (kSeeds * 256.0);
    }
  }
  // Delta^2/6 with Delta = 2 * 5 * 0.1487 / 8.
  EXPECT_NEAR(squares, 0.00575, 0.0004);
  for (int64_t l = 0; l < kLength; ++l) {
    EXPECT_NEAR(mean[l], static_cast<double>(x[l]) - own[l],
                5 * std::sqrt(0.00575 / kSeeds));
  }
}

// Scales that are far too small, or too large, find their way.
TEST(ModCode, ScalesMendThemselves) {
  Rng rng(7);
  ModSpec spec;
  const std::vector<float> own = Normal(rng, 512, 1);
  const std::vector<float> x = Plus(own, Normal(rng, 512, 0.05));
  for (const uint8_t first : {40, 240}) {
    std::vector<BlockScale> scales = AllAt(spec, 512, first);
    for (int k = 0; k < 60; ++k) {
      (void)ReadMod(WriteMod(spec, x, scales, rng.Next()), own,
                    absl::MakeSpan(scales));
    }
    for (const BlockScale& scale : scales) {
      EXPECT_NEAR(ModScale(scale.e), 0.05, 0.01) << int{first};
      EXPECT_EQ(scale.refusals, 0);
    }
  }
}

// A refused block moves nobody further than its window, and others not at all.
TEST(ModCode, ABlockOutOfReachIsRefusedByItself) {
  Rng rng(9);
  ModSpec spec;
  const std::vector<float> own = Normal(rng, 512, 1);
  std::vector<float> x = own;
  for (int l = 256; l < 512; ++l)
    x[l] += 50.0F + 3.0F * static_cast<float>(l % 7);
  std::vector<BlockScale> scales = AllAt(spec, 512, 150);
  const ModAnswer answer =
      ReadMod(WriteMod(spec, x, scales, 1), own, absl::MakeSpan(scales));
  EXPECT_EQ(answer.refused, (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(scales[1], (BlockScale{155, 1}));
  const FlatVector d = ModDifference(answer);
  double squares = 0;
  for (int l = 0; l < 256; ++l) EXPECT_EQ(d[l], 0);
  for (int l = 256; l < 512; ++l) squares += static_cast<double>(d[l]) * d[l];
  const double window = spec.window * ModScale(150);
  EXPECT_LE(squares, 256 * window * window);
}

TEST(ModCode, WhatIsNotFiniteIsNotSent) {
  ModSpec spec;
  std::vector<float> x(600, 1.0F);
  x[300] = std::numeric_limits<float>::quiet_NaN();
  x[599] = std::numeric_limits<float>::infinity();
  std::vector<BlockScale> scales = AllAt(spec, 600, 100);
  const ModOffer offer = WriteMod(spec, x, scales, 4);
  EXPECT_GT(offer.scales[0], 0);
  EXPECT_EQ(offer.scales[1], 0);
  EXPECT_EQ(offer.scales[2], 0);
  // Nor is it read against: the block is refused, and moves nothing.
  const ModOffer good =
      WriteMod(spec, std::vector<float>(600, 1.0F), scales, 4);
  const ModAnswer answer = ReadMod(good, x, absl::MakeSpan(scales));
  EXPECT_EQ(answer.refused, (std::vector<uint8_t>{0, 1, 1}));
  for (const float d : ModDifference(answer)) EXPECT_EQ(d, 0);
}

TEST(ModCode, BlocksGetAFirstScaleOnceTheyHaveMoved) {
  ModSpec spec;
  const std::vector<float> start(600, 1.0F);
  std::vector<float> x = start;
  std::vector<BlockScale> scales(3);
  FirstScales(spec, x, start, absl::MakeSpan(scales));
  for (const BlockScale& scale : scales) EXPECT_EQ(scale.e, 0);
  for (int l = 256; l < 512; ++l) x[l] += 0.5F;
  FirstScales(spec, x, start, absl::MakeSpan(scales));
  EXPECT_EQ(scales[0].e, 0);
  EXPECT_EQ(scales[1].e, ModScaleCode(0.25));
  EXPECT_EQ(scales[2].e, 0);
}

}  // namespace
}  // namespace dfl::core
