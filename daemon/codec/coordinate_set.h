// Which s of the n coordinates of a flat vector a message carries: a bitmap of
// n bits and a rank directory of n/1024 bytes, nothing else of order n.
//
// Member number q (0 <= q < s, in increasing order of the coordinate) is what
// the rest of the codec calls "the q-th sent value".
//
// Everything is integer arithmetic on 64-bit words, so every platform derives
// the same set. tests/unit/codec/coordinate_set_test.cc pins the bytes.
//
// Thread-compatible; immutable once made.
#ifndef DFL_CODEC_COORDINATE_SET_H_
#define DFL_CODEC_COORDINATE_SET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/codec/coordinate_kernels.h"

namespace dfl::codec {

// The longest vector: coordinates are 32-bit numbers.
inline constexpr int64_t kMaxVectorLength = 0xFFFFFFFF;

class CoordinateSet {
 public:
  // A place between two members; the next one Take() returns is at or after it.
  class Cursor {
   private:
    friend class CoordinateSet;
    kernels::BitCursor place_;
  };

  // Draws s of n uniformly without replacement from `seed`. Requires
  // 1 <= s <= n <= kMaxVectorLength.
  //
  // The derivation must never change: m = s, or n - s when 2 s > n. Rng(seed)
  // gives 64-bit words, of which the low and then the high half is used as a
  // 32-bit x. With p = x n (64 bits), x is rejected when p mod 2^32 < 2^32 mod
  // n, else it draws coordinate p >> 32. Coordinates are drawn until m
  // different ones are marked; when 2 s > n the set is those not marked.
  // Cost: at most 1.39 s draws on average, and O(n/64).
  static CoordinateSet Random(int64_t n, int64_t s, uint64_t seed);

  // The s coordinates with the largest |values[l] - reference[l]|, ties to the
  // lower coordinate. `reference` is empty (all zero) or has values.size()
  // entries; all are finite. Requires 1 <= s <= n <= kMaxVectorLength.
  // Cost: about one pass (selection.h), O(n) time.
  static CoordinateSet LargestDifferences(absl::Span<const float> values,
                                          absl::Span<const float> reference,
                                          int64_t s);

  // The members as a Rice code of their gaps (see index_code.h), in at most
  // MaxIndexBytes(n, s) bytes.
  std::string EncodeIndices() const;

  // The inverse of EncodeIndices. Any bytes give a set or an error. Requires
  // 1 <= s <= n <= kMaxVectorLength.
  // Errors: INVALID_ARGUMENT  a coordinate is not below n, the bytes end too
  //                           early or go on after the last one.
  static absl::StatusOr<CoordinateSet> DecodeIndices(int64_t n, int64_t s,
                                                     absl::string_view bytes);

  int64_t n() const { return n_; }
  int64_t s() const { return s_; }

  bool Contains(int64_t l) const { return words_[l >> 6] >> (l & 63) & 1; }

  // How many members are below `l`, 0 <= l <= n. At most 64 words are read.
  int64_t Rank(int64_t l) const;

  // The cursor before the first member >= l, 0 <= l <= n.
  Cursor From(int64_t l) const;

  // Fills `out` with the next out.size() members, which must exist.
  void Take(Cursor* cursor, absl::Span<uint32_t> out) const;

 private:
  CoordinateSet(int64_t n, int64_t s);
  // Call when words_ is complete.
  void BuildRanks();

  int64_t n_;
  int64_t s_;
  std::vector<uint64_t> words_;  // bit l & 63 of word l >> 6
  std::vector<uint32_t> ranks_;  // members before word 64 i
};

}  // namespace dfl::codec

#endif  // DFL_CODEC_COORDINATE_SET_H_
