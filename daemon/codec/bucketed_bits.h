// Sets bits of a long bitmap in no order, near each other in time where they
// are near in memory. A bitmap of 11 million bits does not fit the first cache,
// nor, beside other work, the second. So bits are put into buckets by their
// place, and a bucket is emptied when it is full: into a 64th of the bitmap,
// which does fit.
#ifndef DFL_CODEC_BUCKETED_BITS_H_
#define DFL_CODEC_BUCKETED_BITS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace dfl::codec {

class BucketedBits {
 public:
  // `words` has n bits, 1 <= n <= 2^32, and outlives this.
  BucketedBits(uint64_t n, uint64_t* words);

  // Sets bit `l` < n, now or later.
  void Add(uint32_t l) {
    Bucket& bucket = buckets_[l >> shift_];
    bucket.bits[bucket.count++] = l;
    if (bucket.count == kRoom) Empty(&bucket);
  }

  // Sets what waits. Returns how many bits were set since the last call that
  // were not set before.
  uint32_t Finish();

 private:
  static constexpr size_t kBuckets = 64;
  static constexpr size_t kRoom = 256;

  struct Bucket {
    size_t count = 0;
    std::array<uint32_t, kRoom> bits;
  };
  void Empty(Bucket* bucket);

  uint64_t* words_;
  int shift_ = 0;  // a bit's bucket is its number, shifted
  uint32_t set_ = 0;
  std::array<Bucket, kBuckets> buckets_;
};

}  // namespace dfl::codec

#endif  // DFL_CODEC_BUCKETED_BITS_H_
