#include "daemon/codec/selection.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/codec/coordinate_kernels.h"
#include "daemon/codec/rounding.h"

namespace dfl::codec {
namespace {

// Up to this length sorting is cheaper than the rest.
constexpr size_t kShort = size_t{1} << 15;
constexpr size_t kSampled = 128;
// How far the bounds are from where the sample puts the s-th largest, in
// standard deviations of that place.
constexpr double kDeviations = 4;

// |values[l] - reference[l]| as numbers that grow with it.
class Magnitudes {
 public:
  Magnitudes(absl::Span<const float> values, absl::Span<const float> reference)
      : values_(values), reference_(reference) {}

  size_t size() const { return values_.size(); }
  uint32_t operator[](size_t l) const {
    const float v =
        reference_.empty() ? values_[l] : values_[l] - reference_[l];
    return Bits(v) & kMagnitude;
  }
  const float* values(size_t l) const { return values_.data() + l; }
  const float* reference(size_t l) const {
    return reference_.empty() ? nullptr : reference_.data() + l;
  }

 private:
  const absl::Span<const float> values_;
  const absl::Span<const float> reference_;
};

void Mark(size_t l, absl::Span<uint64_t> words) {
  words[l >> 6] |= uint64_t{1} << (l & 63);
}

// The *wanted-th largest of `all`, which is re-ordered; *wanted becomes how
// many that equal it are among the largest.
uint32_t TakeLargest(std::vector<uint32_t>* all, size_t* wanted) {
  const auto last = all->begin() + static_cast<std::ptrdiff_t>(*wanted - 1);
  std::nth_element(all->begin(), last, all->end(), std::greater<>());
  *wanted = 1 + static_cast<size_t>(std::count(all->begin(), last, *last));
  return *last;
}

// ------------------------------------------------------------ by a sample ----

struct Bounds {
  uint32_t low = 0;
  uint32_t high = kMagnitude;
  size_t between = 0;  // how many of all values to expect
};

// One of each kSampled values is looked at, which one is drawn: the seed is
// fixed, for the result does not depend on it.
Bounds SampledBounds(const Magnitudes& magnitudes, size_t s) {
  Rng rng(0);
  std::vector<uint32_t> sample(magnitudes.size() / kSampled);
  for (size_t i = 0; i < sample.size(); ++i) {
    sample[i] = magnitudes[i * kSampled + rng.Next() % kSampled];
  }
  const auto size = static_cast<double>(sample.size());
  const double share =
      static_cast<double>(s) / static_cast<double>(magnitudes.size());
  const double off = kDeviations * std::sqrt(size * share * (1 - share)) + 1;
  const double above = share * size - off;
  const double below = share * size + off;
  Bounds bounds;
  bounds.between = static_cast<size_t>(2 * off) * kSampled;
  auto from = sample.begin();
  if (above >= 1) {
    const auto at = from + static_cast<std::ptrdiff_t>(above);
    std::nth_element(from, at, sample.end(), std::greater<>());
    bounds.high = *at;
    from = at;
  }
  if (below < size) {
    const auto at = sample.begin() + static_cast<std::ptrdiff_t>(below);
    std::nth_element(from, at, sample.end(), std::greater<>());
    bounds.low = *at;
  }
  return bounds;
}

// False: the bounds were wrong; `words` then has bits set in vain.
bool MarkBySample(const Magnitudes& magnitudes, size_t s,
                  absl::Span<uint64_t> words) {
  const Bounds bounds = SampledBounds(magnitudes, s);
  const size_t n = magnitudes.size();
  std::vector<uint32_t> coordinates(2 * bounds.between + 64);
  std::vector<uint32_t> values(coordinates.size());
  kernels::Candidates between;
  between.coordinates = coordinates.data();
  between.magnitudes = values.data();
  between.room = coordinates.size();
  const size_t whole = n / 64;
  if (kernels::MarkAbove(magnitudes.values(0), magnitudes.reference(0), whole,
                         bounds.low, bounds.high, words.data(),
                         &between) < whole) {
    return false;
  }
  for (size_t l = whole * 64; l < n; ++l) {
    if (magnitudes[l] > bounds.high) Mark(l, words);
    if (magnitudes[l] > bounds.high || magnitudes[l] < bounds.low) continue;
    if (between.count == between.room) return false;
    coordinates[between.count] = static_cast<uint32_t>(l);
    values[between.count++] = magnitudes[l];
  }
  const auto above =
      static_cast<size_t>(kernels::CountBits(words.data(), words.size()));
  if (above > s || above + between.count < s) return false;
  size_t wanted = s - above;
  if (wanted == 0) return true;
  std::vector<uint32_t> sorted(
      values.begin(),
      values.begin() + static_cast<std::ptrdiff_t>(between.count));
  const uint32_t smallest = TakeLargest(&sorted, &wanted);
  for (size_t i = 0; i < between.count; ++i) {
    if (values[i] < smallest) continue;
    if (values[i] == smallest) {
      if (wanted == 0) continue;
      --wanted;
    }
    Mark(coordinates[i], words);
  }
  return true;
}

// -------------------------------------------------------------- otherwise ----

// Walks `counts` from the top until *wanted are covered: the bin where that
// happens; *wanted becomes how many of that bin are wanted.
size_t BinOfLargest(const std::vector<size_t>& counts, size_t* wanted) {
  size_t bin = counts.size() - 1;
  while (counts[bin] < *wanted) {
    *wanted -= counts[bin];
    DFL_CHECK(bin > 0);
    --bin;
  }
  return bin;
}

// As TakeLargest: by the upper 16 bits, then by the lower 15.
uint32_t LargestByCounting(const Magnitudes& magnitudes, size_t* wanted) {
  std::vector<size_t> upper(size_t{1} << 16);
  for (size_t l = 0; l < magnitudes.size(); ++l) ++upper[magnitudes[l] >> 15];
  const size_t high = BinOfLargest(upper, wanted);
  std::vector<size_t> lower(size_t{1} << 15);
  for (size_t l = 0; l < magnitudes.size(); ++l) {
    const uint32_t m = magnitudes[l];
    if (m >> 15 == high) ++lower[m & 0x7FFF];
  }
  const size_t low = BinOfLargest(lower, wanted);
  return static_cast<uint32_t>(high << 15 | low);
}

uint32_t LargestBySorting(const Magnitudes& magnitudes, size_t* wanted) {
  std::vector<uint32_t> all(magnitudes.size());
  for (size_t l = 0; l < all.size(); ++l) all[l] = magnitudes[l];
  return TakeLargest(&all, wanted);
}

}  // namespace

void MarkLargest(absl::Span<const float> values,
                 absl::Span<const float> reference, int64_t s,
                 absl::Span<uint64_t> words) {
  const Magnitudes magnitudes(values, reference);
  auto wanted = static_cast<size_t>(s);
  const bool is_short = values.size() <= kShort;
  if (!is_short) {
    if (MarkBySample(magnitudes, wanted, words)) return;
    std::fill(words.begin(), words.end(), 0);
  }
  const uint32_t smallest = is_short ? LargestBySorting(magnitudes, &wanted)
                                     : LargestByCounting(magnitudes, &wanted);
  // All above it, and the first `wanted` that equal it.
  for (size_t l = 0; l < magnitudes.size(); ++l) {
    const uint32_t m = magnitudes[l];
    if (m < smallest) continue;
    if (m == smallest) {
      if (wanted == 0) continue;
      --wanted;
    }
    Mark(l, words);
  }
}

}  // namespace dfl::codec
