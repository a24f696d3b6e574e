// Sets bits of a long bitmap in no order, near each other in time where they
// are near in memory. A bitmap of 11 million bits does not fit the first cache,
// nor, beside other work, the second. So bits are put into buckets by their
// place, and a bucket is emptied when it is full: into a 64th of the bitmap,
// which does fit, and with so many at a time that each line of it is fetched
// for several. Memory: n/4 bytes, and 1 MB at most.
#ifndef DFL_CODEC_BUCKETED_BITS_H_
#define DFL_CODEC_BUCKETED_BITS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dfl::codec {

class BucketedBits {
 public:
  // `words` has n bits, 1 <= n <= 2^32, and outlives this.
  BucketedBits(uint64_t n, uint64_t* words);

  // Sets bit `l` < n, now or later.
  void Add(uint32_t l) {
    const size_t bucket = l >> shift_;
    bits_[bucket * room_ + counts_[bucket]++] = l;
    if (counts_[bucket] == room_) Empty(bucket);
  }

  // Sets what waits. Returns how many bits were set since the last call that
  // were not set before.
  uint32_t Finish();

 private:
  static constexpr size_t kBuckets = 64;

  void Empty(size_t bucket);

  uint64_t* words_;
  int shift_ = 0;  // a bit's bucket is its number, shifted
  size_t room_;    // of a bucket
  uint32_t set_ = 0;
  std::array<size_t, kBuckets> counts_{};
  std::vector<uint32_t> bits_;  // [kBuckets, room_]
};

}  // namespace dfl::codec

#endif  // DFL_CODEC_BUCKETED_BITS_H_
