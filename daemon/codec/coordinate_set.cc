#include "daemon/codec/coordinate_set.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/codec/index_code.h"

namespace dfl::codec {
namespace {

constexpr size_t kWordsPerRank = 64;
// Up to this length sorting is cheaper than counting.
constexpr size_t kShort = size_t{1} << 15;

// std::popcount is a call where the baseline has no such instruction.
int PopCount(uint64_t x) {
  x = x - ((x >> 1) & 0x5555555555555555u);
  x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
  return static_cast<int>((x * 0x0101010101010101u) >> 56);
}

// |a - b| as a number that grows with it. Finite inputs.
uint32_t Magnitude(float a, float b) {
  return std::bit_cast<uint32_t>(a - b) & 0x7FFFFFFFu;
}

// Walks `counts` from the top until `wanted` are covered: the bin where that
// happens; *wanted becomes how many of that bin are wanted.
size_t BinOfLargest(const std::vector<int64_t>& counts, int64_t* wanted) {
  size_t bin = counts.size() - 1;
  while (counts[bin] < *wanted) {
    *wanted -= counts[bin];
    DFL_CHECK(bin > 0);
    --bin;
  }
  return bin;
}

// The *wanted-th largest of magnitude(0 .. n - 1); *wanted becomes how many
// that equal it are among the largest.
template <typename MagnitudeOf>
uint32_t LargestBySorting(size_t n, const MagnitudeOf& magnitude,
                          int64_t* wanted) {
  std::vector<uint32_t> all(n);
  for (size_t l = 0; l < n; ++l) all[l] = magnitude(l);
  const auto last = all.begin() + (*wanted - 1);
  std::nth_element(all.begin(), last, all.end(), std::greater<>());
  *wanted = 1 + std::count(all.begin(), last, *last);
  return *last;
}

// The same: by its upper 16 bits, then by its lower 15.
template <typename MagnitudeOf>
uint32_t LargestByCounting(size_t n, const MagnitudeOf& magnitude,
                           int64_t* wanted) {
  std::vector<int64_t> upper(size_t{1} << 16);
  for (size_t l = 0; l < n; ++l) ++upper[magnitude(l) >> 15];
  const size_t high = BinOfLargest(upper, wanted);
  std::vector<int64_t> lower(size_t{1} << 15);
  for (size_t l = 0; l < n; ++l) {
    const uint32_t m = magnitude(l);
    if (m >> 15 == high) ++lower[m & 0x7FFF];
  }
  const size_t low = BinOfLargest(lower, wanted);
  return static_cast<uint32_t>(high << 15 | low);
}

}  // namespace

CoordinateSet::CoordinateSet(int64_t n, int64_t s) : n_(n), s_(s) {
  DFL_CHECK(1 <= s && s <= n && n <= kMaxVectorLength);
  words_.resize(static_cast<size_t>((n + 63) / 64));
}

void CoordinateSet::BuildRanks() {
  ranks_.reserve(words_.size() / kWordsPerRank + 1);
  uint32_t rank = 0;
  for (size_t w = 0; w < words_.size(); ++w) {
    if (w % kWordsPerRank == 0) ranks_.push_back(rank);
    rank += static_cast<uint32_t>(PopCount(words_[w]));
  }
  DFL_CHECK(rank == s_);
}

CoordinateSet CoordinateSet::Random(int64_t n, int64_t s, uint64_t seed) {
  CoordinateSet set(n, s);
  const bool complement = s > n - s;
  const auto wanted = static_cast<uint32_t>(complement ? n - s : s);
  const auto bound = static_cast<uint32_t>(n);
  const uint32_t threshold = (0u - bound) % bound;
  uint64_t* const words = set.words_.data();
  uint32_t marked = 0;
  const auto mark = [&](uint32_t x) {
    const uint64_t product = uint64_t{x} * bound;
    if (static_cast<uint32_t>(product) < threshold) return;
    const auto l = static_cast<uint32_t>(product >> 32);
    const uint64_t before = words[l >> 6];
    marked += static_cast<uint32_t>(~before >> (l & 63) & 1);
    words[l >> 6] = before | uint64_t{1} << (l & 63);
  };
  Rng rng(seed);
  while (marked < wanted) {
    const uint64_t x = rng.Next();
    mark(static_cast<uint32_t>(x));
    if (marked == wanted) break;
    mark(static_cast<uint32_t>(x >> 32));
  }
  if (complement) {
    for (uint64_t& word : set.words_) word = ~word;
    if (n % 64 != 0) set.words_.back() &= (uint64_t{1} << (n % 64)) - 1;
  }
  set.BuildRanks();
  return set;
}

CoordinateSet CoordinateSet::LargestDifferences(
    absl::Span<const float> values, absl::Span<const float> reference,
    int64_t s) {
  const size_t n = values.size();
  DFL_CHECK(reference.empty() || reference.size() == n);
  CoordinateSet set(static_cast<int64_t>(n), s);
  const auto magnitude = [&](size_t l) {
    return Magnitude(values[l], reference.empty() ? 0.0f : reference[l]);
  };
  int64_t wanted = s;
  const uint32_t smallest = n <= kShort
                                ? LargestBySorting(n, magnitude, &wanted)
                                : LargestByCounting(n, magnitude, &wanted);
  // All above it, and the first `wanted` that equal it.
  for (size_t l = 0; l < n; ++l) {
    const uint32_t m = magnitude(l);
    if (m < smallest || (m == smallest && wanted-- <= 0)) continue;
    set.words_[l >> 6] |= uint64_t{1} << (l & 63);
  }
  set.BuildRanks();
  return set;
}

std::string CoordinateSet::EncodeIndices() const {
  GapWriter writer(RiceParameter(n_, s_));
  uint64_t next = 0;
  for (size_t w = 0; w < words_.size(); ++w) {
    for (uint64_t bits = words_[w]; bits != 0; bits &= bits - 1) {
      const uint64_t l = w * 64 + static_cast<uint64_t>(std::countr_zero(bits));
      writer.Add(l - next);
      next = l + 1;
    }
  }
  return writer.Finish();
}

absl::StatusOr<CoordinateSet> CoordinateSet::DecodeIndices(
    int64_t n, int64_t s, absl::string_view bytes) {
  CoordinateSet set(n, s);
  if (static_cast<int64_t>(bytes.size()) > MaxIndexBytes(n, s)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the list of coordinates has ", bytes.size(), " bytes; ",
                     s, " of ", n, " take at most ", MaxIndexBytes(n, s)));
  }
  GapReader reader(bytes, RiceParameter(n, s));
  uint64_t next = 0;
  for (int64_t q = 0; q < s; ++q) {
    uint64_t gap = 0;
    if (!reader.Next(&gap)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the list of coordinates ends after ", q, " of ", s));
    }
    // A gap is below 2^k times the bits of the list, so below 2^38.
    if (gap >= static_cast<uint64_t>(n) - next) {
      return absl::InvalidArgumentError(
          absl::StrCat("sent coordinate ", q, " is beyond the ", n,
                       " parameters of this model"));
    }
    next += gap;
    set.words_[next >> 6] |= uint64_t{1} << (next & 63);
    ++next;
  }
  if (!reader.AtEnd()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the list of coordinates goes on after the ", s, " announced"));
  }
  set.BuildRanks();
  return set;
}

int64_t CoordinateSet::Rank(int64_t l) const {
  if (l >= n_) return s_;
  const auto word = static_cast<size_t>(l >> 6);
  size_t w = word / kWordsPerRank * kWordsPerRank;
  int64_t rank = ranks_[word / kWordsPerRank];
  for (; w < word; ++w) rank += PopCount(words_[w]);
  return rank + PopCount(words_[word] & ((uint64_t{1} << (l & 63)) - 1));
}

CoordinateSet::Cursor CoordinateSet::From(int64_t l) const {
  Cursor cursor;
  cursor.word_ = static_cast<size_t>(l >> 6);
  if (cursor.word_ < words_.size()) {
    cursor.bits_ = words_[cursor.word_] & (~uint64_t{0} << (l & 63));
  }
  return cursor;
}

void CoordinateSet::Take(Cursor* cursor, absl::Span<uint32_t> out) const {
  size_t w = cursor->word_;
  uint64_t bits = cursor->bits_;
  for (uint32_t& l : out) {
    while (bits == 0) {
      ++w;
      DFL_CHECK(w < words_.size());
      bits = words_[w];
    }
    l = static_cast<uint32_t>(w * 64) +
        static_cast<uint32_t>(std::countr_zero(bits));
    bits &= bits - 1;
  }
  cursor->word_ = w;
  cursor->bits_ = bits;
}

}  // namespace dfl::codec
