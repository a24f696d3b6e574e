#include "daemon/codec/coordinate_set.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/checksum.h"
#include "daemon/base/rng.h"
#include "daemon/codec/index_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/codec/naive_codec.h"

namespace dfl::codec {
namespace {

using ::testing::ElementsAre;

std::vector<uint32_t> Members(const CoordinateSet& set) {
  std::vector<uint32_t> members(static_cast<size_t>(set.s()));
  CoordinateSet::Cursor cursor = set.From(0);
  set.Take(&cursor, absl::MakeSpan(members));
  return members;
}

uint32_t ChecksumOf(const std::vector<uint32_t>& members) {
  return Crc32c(absl::string_view(reinterpret_cast<const char*>(members.data()),
                                  members.size() * 4));
}

// These numbers are part of the wire format: two releases that disagree on
// them mix wrong coordinates without noticing.
TEST(RandomCoordinates, ArePinnedForEver) {
  EXPECT_THAT(Members(CoordinateSet::Random(100, 10, 1)),
              ElementsAre(3, 6, 27, 39, 52, 57, 60, 69, 70, 75));
  EXPECT_THAT(Members(CoordinateSet::Random(12, 9, 2)),
              ElementsAre(0, 2, 3, 4, 5, 6, 8, 9, 11));
  EXPECT_EQ(ChecksumOf(Members(CoordinateSet::Random(268362, 26836, 3))),
            1937177596);
  EXPECT_EQ(ChecksumOf(Members(CoordinateSet::Random(268362, 200000, 4))),
            556965913);
}

TEST(RandomCoordinates, AreThoseOfTheNaiveDerivation) {
  for (const int64_t n :
       {1, 2, 3, 63, 64, 65, 100, 1000, 4095, 4096, 4097, 20000}) {
    for (const int64_t s : {int64_t{1}, n / 10, n / 2, n / 2 + 1, n - 1, n}) {
      if (s < 1) continue;
      for (uint64_t seed = 0; seed < 3; ++seed) {
        SCOPED_TRACE(absl::StrCat("n ", n, " s ", s, " seed ", seed));
        const auto set = CoordinateSet::Random(n, s, seed);
        EXPECT_EQ(set.s(), s);
        EXPECT_EQ(Members(set), NaiveRandomCoordinates(n, s, seed));
      }
    }
  }
}

// Each coordinate is as likely as any other, and so is each pair of
// neighbours. Both statistics are sums of squared deviations that have mean 1
// a term; five standard deviations of a chi-square of as many terms are
// allowed.
TEST(RandomCoordinates, AreUniformWithoutReplacement) {
  constexpr int kSeeds = 4000;
  constexpr int64_t kN = 1000;
  for (const int64_t s : {100, 500, 501, 900}) {
    SCOPED_TRACE(absl::StrCat("s ", s));
    std::vector<int> single(kN);
    std::vector<int> pair(kN - 1);
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const auto set =
          CoordinateSet::Random(kN, s, DeriveSeed(17, "uniform", seed));
      for (int64_t l = 0; l < kN; ++l) {
        single[l] += set.Contains(l);
        if (l > 0) pair[l - 1] += set.Contains(l) && set.Contains(l - 1);
      }
    }
    const double p = static_cast<double>(s) / kN;
    const double p2 = p * static_cast<double>(s - 1) / (kN - 1);
    double chi = 0;
    for (const int c : single) {
      chi += std::pow(c - kSeeds * p, 2) / (kSeeds * p * (1 - p));
    }
    double chi2 = 0;
    for (const int c : pair) {
      chi2 += std::pow(c - kSeeds * p2, 2) / (kSeeds * p2 * (1 - p2));
    }
    EXPECT_NEAR(chi, kN, 5 * std::sqrt(2.0 * kN));
    // Neighbouring pairs share a coordinate, which widens the spread.
    EXPECT_NEAR(chi2, kN, 10 * std::sqrt(2.0 * kN));
  }
}

TEST(RandomCoordinates, OverlapOfTwoSeedsIsThatOfIndependentDraws) {
  constexpr int64_t kN = 20000;
  constexpr int64_t kS = 2000;
  double overlap = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto a = CoordinateSet::Random(kN, kS, seed);
    const auto b = CoordinateSet::Random(kN, kS, seed + 1);
    for (int64_t l = 0; l < kN; ++l) overlap += a.Contains(l) && b.Contains(l);
  }
  // Mean 200 a pair, standard deviation about 12.7; 200 pairs.
  EXPECT_NEAR(overlap / 200, 200, 5 * 12.7 / std::sqrt(200.0));
}

TEST(CoordinateSetTest, RankAndCursorAgreeWithCounting) {
  for (const int64_t n : {1, 64, 5000, 20001}) {
    const int64_t s = std::max<int64_t>(1, n / 7);
    const auto set = CoordinateSet::Random(n, s, 5);
    const std::vector<uint32_t> members = Members(set);
    for (int64_t l = 0; l <= n; ++l) {
      const auto expected =
          std::lower_bound(members.begin(), members.end(), l) - members.begin();
      ASSERT_EQ(set.Rank(l), expected) << "n " << n << " l " << l;
      if (expected == s) continue;
      uint32_t next = 0;
      CoordinateSet::Cursor cursor = set.From(l);
      set.Take(&cursor, absl::MakeSpan(&next, 1));
      ASSERT_EQ(next, members[expected]) << "n " << n << " l " << l;
    }
  }
}

TEST(LargestDifferences, AreThoseOfSortingTiesToTheLowerCoordinate) {
  Rng rng(6);
  for (int round = 0; round < 200; ++round) {
    const auto n = static_cast<int64_t>(1 + rng.Below(300));
    const auto s = static_cast<int64_t>(1 + rng.Below(n));
    std::vector<float> values(n);
    std::vector<float> reference(n);
    // Few different values, so that there are many ties.
    for (float& v : values) v = static_cast<float>(rng.Below(9)) - 4;
    for (float& v : reference) v = static_cast<float>(rng.Below(3)) * 1e-3f;
    const bool with_reference = rng.Bernoulli(0.5);
    std::vector<uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const auto key = [&](uint32_t l) {
        return std::fabs(values[l] - (with_reference ? reference[l] : 0.0f));
      };
      return key(a) > key(b);
    });
    order.resize(s);
    std::sort(order.begin(), order.end());
    const auto set = CoordinateSet::LargestDifferences(
        values, with_reference ? reference : std::vector<float>(), s);
    EXPECT_EQ(Members(set), order) << "round " << round;
  }
}

// Of a long vector: against sorting all of it.
void ExpectLargest(const std::vector<float>& values,
                   const std::vector<float>& reference,
                   const std::vector<int64_t>& sizes) {
  std::vector<float> magnitudes(values.size());
  for (size_t l = 0; l < values.size(); ++l) {
    magnitudes[l] =
        std::fabs(values[l] - (reference.empty() ? 0.0F : reference[l]));
  }
  std::vector<uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return magnitudes[a] > magnitudes[b];
  });
  for (const int64_t s : sizes) {
    std::vector<uint32_t> largest(order.begin(), order.begin() + s);
    std::sort(largest.begin(), largest.end());
    EXPECT_EQ(Members(CoordinateSet::LargestDifferences(values, reference, s)),
              largest)
        << s;
  }
}

constexpr int64_t kLong = 100'003;

TEST(LargestDifferences, OfLongVectorsAreFoundBySampling) {
  const std::vector<int64_t> sizes = {
      1, 2, 100, 777, kLong / 10, kLong / 2, kLong - 5, kLong - 1, kLong};
  const std::vector<float> values = NormalValues(kLong, 1, 14);
  ExpectLargest(values, {}, sizes);
  ExpectLargest(values, NormalValues(kLong, 1, 15), sizes);
}

TEST(LargestDifferences, OfLongVectorsWithTiesAreFoundToo) {
  Rng rng(16);
  std::vector<float> values(kLong);
  // Tens of each value in [0, 4096), of either sign.
  for (float& v : values) v = static_cast<float>(rng.Below(8192)) - 4096;
  ExpectLargest(values, {}, {1, 777, kLong / 2, kLong});
  // Nearly all are equal, so that there are too many to list.
  for (float& v : values) v = rng.Bernoulli(0.001) ? 1.0F : 0.0F;
  ExpectLargest(values, {}, {1, 50, 777, kLong / 2});
}

// The values that selection.cc looks at first are all 0, and no others are: the
// bounds that they give are wrong.
TEST(LargestDifferences, AMisleadingSampleDoesNoHarm) {
  std::vector<float> values = NormalValues(kLong, 1, 17);
  Rng rng(0);
  for (size_t l = 0; l + 128 <= values.size(); l += 128) {
    values[l + rng.Next() % 128] = 0;
  }
  ExpectLargest(values, {}, {1, 1000, kLong / 2, kLong - 1});
}

TEST(IndexCode, GivesBackWhatWasListed) {
  Rng rng(7);
  for (int round = 0; round < 300; ++round) {
    const auto n =
        static_cast<int64_t>(1 + rng.Below(round < 150 ? 70 : 90000));
    const auto s = static_cast<int64_t>(
        1 + rng.Below(rng.Bernoulli(0.5) ? n : std::min<int64_t>(n, 20)));
    const auto set = CoordinateSet::Random(n, s, rng.Next());
    const std::string bytes = set.EncodeIndices();
    SCOPED_TRACE(absl::StrCat("round ", round, " n ", n, " s ", s));
    EXPECT_GE(static_cast<int64_t>(bytes.size()), MinIndexBytes(n, s));
    EXPECT_LE(static_cast<int64_t>(bytes.size()), MaxIndexBytes(n, s));
    const auto back = CoordinateSet::DecodeIndices(n, s, bytes);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(Members(*back), Members(set));
    // One byte fewer or more is an error.
    EXPECT_FALSE(CoordinateSet::DecodeIndices(
                     n, s, absl::string_view(bytes).substr(0, bytes.size() - 1))
                     .ok());
    EXPECT_FALSE(CoordinateSet::DecodeIndices(n, s, bytes + '\0').ok());
    EXPECT_FALSE(CoordinateSet::DecodeIndices(n, s, bytes + '\1').ok());
  }
}

TEST(IndexCode, TakesAtMostTwoBytesACoordinateWhateverTheyAre) {
  for (const int64_t n : {268362, 11170000}) {
    for (const double rate : {0.0002, 0.001, 0.01, 0.1, 0.5, 0.9, 1.0}) {
      const int64_t s = core::SentCoordinates(rate, n);
      EXPECT_LE(MaxIndexBytes(n, s), 2 * s + 1) << n << " " << rate;
    }
    // However few there are, what is beyond two bytes each stays below 100.
    for (int64_t s = 1; s < n / 5000; ++s) {
      EXPECT_LE(MaxIndexBytes(n, s), 2 * s + 100) << n << " " << s;
    }
  }
}

TEST(IndexCode, TakesLittleMoreThanTheEntropyForSpreadCoordinates) {
  constexpr int64_t kN = 1000000;
  const auto bytes = CoordinateSet::Random(kN, kN / 10, 8).EncodeIndices();
  EXPECT_LE(static_cast<double>(bytes.size()) * 8, 4.8 * kN / 10);
}

TEST(IndexCode, HoldsClustersAndFarGaps) {
  std::vector<float> values(100000);
  for (size_t l = 99000; l < 100000; ++l) values[l] = 1;
  const auto set = CoordinateSet::LargestDifferences(values, {}, 1000);
  const auto back =
      CoordinateSet::DecodeIndices(100000, 1000, set.EncodeIndices());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(Members(*back).front(), 99000);
  EXPECT_EQ(Members(*back).back(), 99999);
}

TEST(IndexCode, TakesAnyBytesWithoutHarm) {
  Rng rng(9);
  int good = 0;
  for (int round = 0; round < 20000; ++round) {
    const auto n = static_cast<int64_t>(1 + rng.Below(400));
    const auto s =
        static_cast<int64_t>(1 + rng.Below(std::min<int64_t>(n, 12)));
    std::string bytes(rng.Below(MaxIndexBytes(n, s) + 3), '\0');
    for (char& c : bytes) {
      c = rng.Bernoulli(0.3) ? '\0' : static_cast<char>(rng.Next());
    }
    const auto set = CoordinateSet::DecodeIndices(n, s, bytes);
    if (!set.ok()) continue;
    ++good;
    EXPECT_EQ(set->EncodeIndices(), bytes);
  }
  EXPECT_GT(good, 10);
}

}  // namespace
}  // namespace dfl::codec
