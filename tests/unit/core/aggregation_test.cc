// Rules by which models are mixed where some may be hostile, against naive
// versions and against what they promise.
#include "daemon/core/vector/aggregation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "daemon/base/distributions.h"
#include "daemon/base/rng.h"
#include "gtest/gtest.h"

namespace dfl::core {
namespace {

using Vector = std::vector<float>;

// Whole and partial vectors, and what they carry.
class Messages {
 public:
  void AddWhole(Vector values, double weight = 0.1) {
    Add(std::make_unique<PlainRemoteVector>(values), weight);
    carried_.emplace_back();
    for (const float value : values) carried_.back().emplace_back(value);
  }
  void AddPart(const Vector& values, const std::vector<int64_t>& coordinates,
               double weight = 0.1) {
    Vector sent;
    carried_.emplace_back(values.size());
    for (const int64_t l : coordinates) {
      sent.push_back(values[static_cast<size_t>(l)]);
      carried_.back()[static_cast<size_t>(l)] = sent.back();
    }
    Add(std::make_unique<PlainRemoteVector>(static_cast<int64_t>(values.size()),
                                            coordinates, sent),
        weight);
  }
  absl::Span<const WeightedVector> all() const { return weighted_; }
  // The values of coordinate `l`, sorted; `own` is one of them.
  std::vector<double> At(size_t l, float own) const {
    std::vector<double> values = {own};
    for (const auto& vector : carried_) {
      if (vector[l].has_value()) values.push_back(*vector[l]);
    }
    std::sort(values.begin(), values.end());
    return values;
  }

 private:
  void Add(std::unique_ptr<RemoteVector> vector, double weight) {
    vectors_.push_back(std::move(vector));
    weighted_.push_back({vectors_.back().get(), weight});
  }
  std::vector<std::unique_ptr<RemoteVector>> vectors_;
  std::vector<std::vector<std::optional<float>>> carried_;
  std::vector<WeightedVector> weighted_;
};

Vector Draw(Rng& rng, size_t n) {
  Vector values(n);
  for (float& value : values) value = static_cast<float>(Normal(rng));
  return values;
}

AggregationSpec Spec(AggregationRule rule, int64_t hostile = 1) {
  AggregationSpec spec;
  spec.rule = rule;
  spec.hostile = hostile;
  return spec;
}

// The mean of sorted `values` from `first` to `last`.
double MeanOf(const std::vector<double>& values, size_t first, size_t last) {
  return std::accumulate(values.begin() + static_cast<int64_t>(first),
                         values.begin() + static_cast<int64_t>(last) + 1, 0.0) /
         static_cast<double>(last - first + 1);
}

constexpr AggregationRule kMiddles[] = {AggregationRule::kTrimmedMean,
                                        AggregationRule::kMedian};

TEST(AggregationTest, NamesAreReadAsTheyAreWritten) {
  for (const auto rule :
       {AggregationRule::kMean, AggregationRule::kTrimmedMean,
        AggregationRule::kMedian, AggregationRule::kCentredClipping}) {
    EXPECT_EQ(*ParseAggregationRule(ToString(rule)), rule);
  }
  EXPECT_EQ(ParseAggregationRule("krum").status().code(),
            absl::StatusCode::kInvalidArgument);
}

// More coordinates than a block has, and messages of different parts.
TEST(AggregationTest, MiddlesAreThoseOfTheSortedValues) {
  constexpr size_t kN = 5000;
  Rng rng(5);
  for (const int64_t hostile : {1, 2}) {
    for (const int count : {2, 5, 8, 40}) {
      for (const AggregationRule rule : kMiddles) {
        const Vector before = Draw(rng, kN);
        Messages messages;
        for (int j = 0; j < count; ++j) {
          std::vector<int64_t> part;
          for (size_t l = 0; l < kN; ++l) {
            if (rng.Uniform() < 0.6) part.push_back(static_cast<int64_t>(l));
          }
          if (j % 3 == 0) {
            messages.AddWhole(Draw(rng, kN));
          } else {
            messages.AddPart(Draw(rng, kN), part);
          }
        }
        Vector own = before;
        const Aggregated aggregated = Aggregate(
            Spec(rule, hostile), messages.all(), 1, absl::MakeSpan(own));
        int64_t left = 0;
        for (size_t l = 0; l < kN; ++l) {
          const std::vector<double> values = messages.At(l, before[l]);
          const size_t f = static_cast<size_t>(hostile);
          if (values.size() < 2 * f + 1) {
            ++left;
            ASSERT_EQ(own[l], before[l]);
            continue;
          }
          const double expected =
              rule == AggregationRule::kMedian
                  ? MeanOf(values, (values.size() - 1) / 2, values.size() / 2)
                  : MeanOf(values, f, values.size() - 1 - f);
          ASSERT_NEAR(own[l], expected, 1e-5) << l << " of " << values.size();
        }
        EXPECT_EQ(aggregated.left, left);
      }
    }
  }
}

TEST(AggregationTest, ShareIsHowFarItGoes) {
  Messages messages;
  for (const float value : {3.0F, 5.0F}) messages.AddWhole({value});
  Vector own = {1};
  Aggregate(Spec(AggregationRule::kMedian), messages.all(), 0.25,
            absl::MakeSpan(own));
  EXPECT_FLOAT_EQ(own[0], 1 + 0.25F * 2);
}

TEST(AggregationTest, EqualModelsStayAsTheyAreToTheBit) {
  const Vector before = {0.1F, -0.0F, 1e-30F, 3e30F, -7.5F};
  for (const auto rule :
       {AggregationRule::kTrimmedMean, AggregationRule::kMedian,
        AggregationRule::kCentredClipping}) {
    Messages messages;
    for (int j = 0; j < 4; ++j) messages.AddWhole(before, 0.2);
    Vector own = before;
    const Aggregated aggregated =
        Aggregate(Spec(rule), messages.all(), 1, absl::MakeSpan(own));
    EXPECT_EQ(aggregated.clipped, 0);
    for (size_t l = 0; l < own.size(); ++l) {
      EXPECT_EQ(std::bit_cast<uint32_t>(own[l]),
                std::bit_cast<uint32_t>(before[l]));
    }
  }
}

TEST(AggregationTest, HostileValuesMoveNobodyBeyondTheHonestOnes) {
  constexpr size_t kN = 300;
  Rng rng(7);
  for (const AggregationRule rule : kMiddles) {
    for (const float lie : {1e30F, -1e30F, 1.5F, 0.0F}) {
      const Vector before = Draw(rng, kN);
      Messages honest;
      Messages all;
      for (int j = 0; j < 6; ++j) {
        const Vector values = Draw(rng, kN);
        honest.AddWhole(values);
        all.AddWhole(values);
      }
      for (int j = 0; j < 2; ++j) all.AddWhole(Vector(kN, lie));
      Vector own = before;
      Aggregate(Spec(rule, 2), all.all(), 1, absl::MakeSpan(own));
      for (size_t l = 0; l < kN; ++l) {
        const std::vector<double> values = honest.At(l, before[l]);
        ASSERT_GE(own[l], values.front() - 1e-6);
        ASSERT_LE(own[l], values.back() + 1e-6);
      }
    }
  }
}

double Length(const Vector& a, const Vector& b) {
  double squares = 0;
  for (size_t l = 0; l < a.size(); ++l) {
    squares += (a[l] - b[l]) * static_cast<double>(a[l] - b[l]);
  }
  return std::sqrt(squares);
}

TEST(AggregationTest, ClippingShortensWhatIsFartherThanTheFarthestHonestOne) {
  const Vector before = {0, 0, 0};
  Messages messages;
  messages.AddWhole({1, 0, 0}, 0.25);
  messages.AddWhole({0, 2, 0}, 0.25);
  messages.AddWhole({0, 0, -1e30F}, 0.25);
  Vector own = before;
  const Aggregated aggregated =
      Aggregate(Spec(AggregationRule::kCentredClipping), messages.all(), 1,
                absl::MakeSpan(own));
  EXPECT_EQ(aggregated.clipped, 1);
  EXPECT_FLOAT_EQ(own[0], 0.25F);
  EXPECT_FLOAT_EQ(own[1], 0.5F);
  EXPECT_NEAR(own[2], -0.25F * 2, 1e-5);  // weight times the radius
}

TEST(AggregationTest, ARadiusThatIsGivenHoldsForAll) {
  Messages messages;
  for (int j = 0; j < 3; ++j) messages.AddWhole({4, 3}, 0.25);
  Vector own = {0, 0};
  AggregationSpec spec = Spec(AggregationRule::kCentredClipping);
  spec.radius = 0.5;
  const Aggregated aggregated =
      Aggregate(spec, messages.all(), 1, absl::MakeSpan(own));
  EXPECT_EQ(aggregated.clipped, 3);
  EXPECT_NEAR(Length(own, {0, 0}), 0.75 * 0.5, 1e-6);
}

// A part tells how far the whole is.
TEST(AggregationTest, ClippingMeasuresPartsAsTheWholeThatTheyAreOf) {
  constexpr size_t kN = 1000;
  Messages messages;
  messages.AddWhole(Vector(kN, 1), 0.25);
  messages.AddWhole(Vector(kN, 1), 0.25);
  std::vector<int64_t> tenth(kN / 10);
  std::iota(tenth.begin(), tenth.end(), 0);
  messages.AddPart(Vector(kN, 2), tenth, 0.25);
  Vector own(kN, 0);
  const Aggregated aggregated =
      Aggregate(Spec(AggregationRule::kCentredClipping), messages.all(), 1,
                absl::MakeSpan(own));
  EXPECT_EQ(aggregated.clipped, 1);
  EXPECT_NEAR(own[0], 0.25F + 0.25F + 0.25F * 1, 1e-5);
}

TEST(AggregationTest, TooFewVectorsLeaveAllAsItIs) {
  for (const auto rule :
       {AggregationRule::kTrimmedMean, AggregationRule::kMedian,
        AggregationRule::kCentredClipping}) {
    Messages messages;
    messages.AddWhole({5, 5});
    Vector own = {1, 2};
    const Aggregated aggregated =
        Aggregate(Spec(rule), messages.all(), 1, absl::MakeSpan(own));
    EXPECT_EQ(own, (Vector{1, 2}));
    EXPECT_EQ(aggregated.left, 2);
    EXPECT_EQ(Aggregate(Spec(rule), {}, 1, absl::MakeSpan(own)).left, 2);
  }
}

}  // namespace
}  // namespace dfl::core
