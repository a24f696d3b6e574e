#include "daemon/codec/coordinate_set.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/codec/bucketed_bits.h"
#include "daemon/codec/index_code.h"
#include "daemon/codec/selection.h"

namespace dfl::codec {
namespace {

constexpr size_t kWordsPerRank = 64;

}  // namespace

CoordinateSet::CoordinateSet(int64_t n, int64_t s) : n_(n), s_(s) {
  DFL_CHECK(1 <= s && s <= n && n <= kMaxVectorLength);
  words_.resize(static_cast<size_t>((n + 63) / 64));
}

void CoordinateSet::BuildRanks() {
  ranks_.reserve(words_.size() / kWordsPerRank + 1);
  int64_t rank = 0;
  for (size_t w = 0; w < words_.size(); w += kWordsPerRank) {
    ranks_.push_back(static_cast<uint32_t>(rank));
    rank += kernels::CountBits(&words_[w],
                               std::min(kWordsPerRank, words_.size() - w));
  }
  DFL_CHECK(rank == s_);
}

CoordinateSet CoordinateSet::Random(int64_t n, int64_t s, uint64_t seed) {
  CoordinateSet set(n, s);
  const bool complement = s > n - s;
  const auto wanted = static_cast<uint32_t>(complement ? n - s : s);
  const auto bound = static_cast<uint32_t>(n);
  const uint32_t threshold = (0u - bound) % bound;
  Rng rng(seed);
  BucketedBits bits(bound, set.words_.data());
  const auto draw = [&](uint64_t x) {
    const uint64_t product = uint64_t{static_cast<uint32_t>(x)} * bound;
    if (static_cast<uint32_t>(product) < threshold) return;
    bits.Add(static_cast<uint32_t>(product >> 32));
  };
  uint32_t marked = 0;
  while (marked < wanted) {
    // As many draws as marks are missing cannot be too many, so that it does
    // not matter which of them are new until all are made.
    for (uint32_t pairs = (wanted - marked) / 2; pairs > 0; --pairs) {
      const uint64_t x = rng.Next();
      draw(x);
      draw(x >> 32);
    }
    const bool one = wanted - marked == 1;
    marked += bits.Finish();
    if (!one) continue;
    const uint64_t x = rng.Next();
    draw(x);
    marked += bits.Finish();
    if (marked < wanted) draw(x >> 32);
    marked += bits.Finish();
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
  MarkLargest(values, reference, s, absl::MakeSpan(set.words_));
  set.BuildRanks();
  return set;
}

std::string CoordinateSet::EncodeIndices() const {
  GapWriter writer(RiceParameter(n_, s_), MaxIndexBytes(n_, s_));
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
  const size_t first = word / kWordsPerRank * kWordsPerRank;
  const uint64_t below = words_[word] & ((uint64_t{1} << (l & 63)) - 1);
  return ranks_[word / kWordsPerRank] +
         kernels::CountBits(&words_[first], word - first) +
         kernels::CountBits(&below, 1);
}

CoordinateSet::Cursor CoordinateSet::From(int64_t l) const {
  Cursor cursor;
  cursor.place_.word = static_cast<size_t>(l >> 6);
  if (cursor.place_.word < words_.size()) {
    cursor.place_.bits =
        words_[cursor.place_.word] & (~uint64_t{0} << (l & 63));
  }
  return cursor;
}

void CoordinateSet::Take(Cursor* cursor, absl::Span<uint32_t> out) const {
  kernels::TakeBits(words_.data(), &cursor->place_, out.size(), out.data());
}

}  // namespace dfl::codec
