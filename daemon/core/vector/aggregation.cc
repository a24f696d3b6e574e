#include "daemon/core/vector/aggregation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/names.h"

namespace dfl::core {
namespace {

constexpr float kNone = std::numeric_limits<float>::infinity();

constexpr std::pair<AggregationRule, const char*> kNames[] = {
    {AggregationRule::kMean, "mean"},
    {AggregationRule::kTrimmedMean, "trimmed-mean"},
    {AggregationRule::kMedian, "median"},
    {AggregationRule::kCentredClipping, "centred-clipping"}};

// The differences of all values at hand, the node's own among them, to its own
// value: a row for each vector and one of zeros, over a block of coordinates.
// After Sort every column is in increasing order.
class ValueRows {
 public:
  explicit ValueRows(absl::Span<const WeightedVector> vectors)
      : vectors_(vectors),
        block_(
            std::clamp<size_t>(kFloats / (vectors.size() + 1), kLeast, kMost)),
        values_((vectors.size() + 1) * block_),
        came_(block_),
        counts_(block_) {}

  int64_t block() const { return static_cast<int64_t>(block_); }
  size_t rows() const { return vectors_.size() + 1; }
  const float* row(size_t r) const { return values_.data() + r * block_; }
  // How many values column `i` has.
  int32_t count(size_t i) const { return counts_[i]; }

  // Takes the coordinates of `range`, at most block(), that `own` has now.
  void Take(CoordinateRange range, absl::Span<const float> own) {
    std::fill(values_.begin(), values_.end(), 0.0F);
    std::fill(counts_.begin(), counts_.end(), 1);
    for (size_t j = 0; j < vectors_.size(); ++j) {
      const absl::Span<float> differences(values_.data() + j * block_,
                                          own.size());
      std::fill(came_.begin(), came_.end(), 0);
      vectors_[j].vector->AddDifference(
          range, own, 1.0F, differences,
          absl::MakeSpan(came_.data(), own.size()));
      for (size_t i = 0; i < own.size(); ++i) {
        counts_[i] += came_[i];
        if (came_[i] == 0) differences[i] = kNone;
      }
    }
  }

  void Sort() {
    for (size_t r = 1; r < rows(); ++r) {
      for (size_t s = r; s > 0; --s) {
        float* low = values_.data() + (s - 1) * block_;
        float* high = values_.data() + s * block_;
        for (size_t i = 0; i < block_; ++i) {
          const float a = low[i];
          const float b = high[i];
          low[i] = std::min(a, b);
          high[i] = std::max(a, b);
        }
      }
    }
  }

 private:
  // All rows of a block stay in the second-level cache.
  static constexpr size_t kFloats = size_t{1} << 15;
  static constexpr size_t kLeast = 64;
  static constexpr size_t kMost = 2048;

  const absl::Span<const WeightedVector> vectors_;
  const size_t block_;
  std::vector<float> values_;
  std::vector<int32_t> came_;    // of the vector that is read
  std::vector<int32_t> counts_;  // of all
};

// The first and the last row of a sorted column of `count` values whose mean is
// taken.
std::pair<int32_t, int32_t> Middle(const AggregationSpec& spec, int32_t count) {
  if (spec.rule == AggregationRule::kMedian) {
    return {(count - 1) / 2, count / 2};
  }
  const auto f = static_cast<int32_t>(spec.hostile);
  return {f, count - 1 - f};
}

Aggregated TakeMiddle(const AggregationSpec& spec,
                      absl::Span<const WeightedVector> vectors, double share,
                      absl::Span<float> own) {
  Aggregated aggregated;
  ValueRows values(vectors);
  const auto n = static_cast<int64_t>(own.size());
  const auto step = static_cast<float>(share);
  std::vector<int32_t> first(static_cast<size_t>(values.block()));
  std::vector<int32_t> last(first.size());
  std::vector<float> sum(first.size());
  for (int64_t begin = 0; begin < n; begin += values.block()) {
    const CoordinateRange range{begin, std::min(n, begin + values.block())};
    const absl::Span<float> slice = own.subspan(
        static_cast<size_t>(begin), static_cast<size_t>(range.size()));
    values.Take(range, slice);
    values.Sort();
    for (size_t i = 0; i < slice.size(); ++i) {
      const int32_t count = values.count(i);
      std::tie(first[i], last[i]) =
          count < spec.values_needed() ? std::pair(0, -1) : Middle(spec, count);
      sum[i] = 0;
    }
    for (size_t r = 0; r < values.rows(); ++r) {
      const float* row = values.row(r);
      const auto place = static_cast<int32_t>(r);
      for (size_t i = 0; i < slice.size(); ++i) {
        sum[i] += place >= first[i] && place <= last[i] ? row[i] : 0.0F;
      }
    }
    for (size_t i = 0; i < slice.size(); ++i) {
      const int32_t taken = last[i] - first[i] + 1;
      if (taken == 0) ++aggregated.left;
      const float moved =
          step * sum[i] / static_cast<float>(std::max(taken, 1));
      if (moved != 0) slice[i] += moved;  // -0 stays -0
    }
  }
  return aggregated;
}

// How far `vector` is from `own` as a whole, as its carried coordinates tell.
double WholeDistance(RemoteVector& vector, absl::Span<const float> own) {
  if (vector.carried() == 0) return 0;
  return std::sqrt(DistanceTo(vector, own).squares *
                   static_cast<double>(vector.size()) /
                   static_cast<double>(vector.carried()));
}

Aggregated Clip(const AggregationSpec& spec,
                absl::Span<const WeightedVector> vectors,
                absl::Span<float> own) {
  Aggregated aggregated;
  const auto f = static_cast<size_t>(spec.hostile);
  if (static_cast<int64_t>(vectors.size()) + 1 < spec.values_needed()) {
    aggregated.left = static_cast<int64_t>(own.size());
    return aggregated;
  }
  std::vector<double> distances;
  distances.reserve(vectors.size());
  for (const WeightedVector& v : vectors) {
    distances.push_back(WholeDistance(*v.vector, own));
  }
  double tau = spec.radius;
  if (tau == 0 && f < distances.size()) {
    std::vector<double> sorted = distances;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    tau = sorted[f];
  }
  std::vector<WeightedVector> shortened(vectors.begin(), vectors.end());
  for (size_t j = 0; j < shortened.size(); ++j) {
    if (distances[j] <= tau) continue;
    shortened[j].weight *= tau / distances[j];
    ++aggregated.clipped;
  }
  MixDifferences(shortened, own);
  return aggregated;
}

}  // namespace

std::string ToString(AggregationRule rule) {
  for (const auto& [value, name] : kNames) {
    if (value == rule) return name;
  }
  return "";
}

absl::StatusOr<AggregationRule> ParseAggregationRule(absl::string_view text) {
  std::vector<std::string> names;
  for (const auto& [value, name] : kNames) {
    if (text == name) return value;
    names.emplace_back(name);
  }
  return UnknownNameError("rule", text, names);
}

Aggregated Aggregate(const AggregationSpec& spec,
                     absl::Span<const WeightedVector> vectors, double share,
                     absl::Span<float> own) {
  DFL_CHECK(spec.robust());
  if (vectors.empty()) return Aggregated{static_cast<int64_t>(own.size()), 0};
  return spec.rule == AggregationRule::kCentredClipping
             ? Clip(spec, vectors, own)
             : TakeMiddle(spec, vectors, share, own);
}

}  // namespace dfl::core
