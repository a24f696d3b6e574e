#include "daemon/codec/bucketed_bits.h"

#include <algorithm>
#include <bit>

namespace dfl::codec {

BucketedBits::BucketedBits(uint64_t n, uint64_t* words)
    : words_(words),
      room_(std::clamp<uint64_t>(n / 1024, 16, 4096)),
      bits_(kBuckets * room_) {
  static_assert(std::has_single_bit(kBuckets));
  const int wide = std::bit_width(n - 1);
  const int narrow = std::bit_width(kBuckets - 1);
  shift_ = wide > narrow ? wide - narrow : 0;
}

void BucketedBits::Empty(size_t bucket) {
  uint64_t* const words = words_;
  const uint32_t* const bits = &bits_[bucket * room_];
  uint32_t set = 0;
  for (size_t i = 0; i < counts_[bucket]; ++i) {
    const uint32_t l = bits[i];
    const uint64_t before = words[l >> 6];
    set += static_cast<uint32_t>(~before >> (l & 63) & 1);
    words[l >> 6] = before | uint64_t{1} << (l & 63);
  }
  set_ += set;
  counts_[bucket] = 0;
}

uint32_t BucketedBits::Finish() {
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) Empty(bucket);
  const uint32_t set = set_;
  set_ = 0;
  return set;
}

}  // namespace dfl::codec
