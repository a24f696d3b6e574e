#include "daemon/codec/coordinate_kernels.h"

#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "daemon/codec/coordinate_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h.
#include "daemon/codec/rounding_vectors.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dfl::codec::kernels {
namespace HWY_NAMESPACE {

// Compiled for each target, these two become its own instructions.

int64_t CountBits(const uint64_t* words, size_t count) {
  int64_t bits = 0;
  for (size_t w = 0; w < count; ++w) bits += std::popcount(words[w]);
  return bits;
}

void TakeBits(const uint64_t* words, BitCursor* cursor, size_t count,
              uint32_t* out) {
  constexpr size_t kStep = 8;
  size_t w = cursor->word;
  uint64_t bits = cursor->bits;
  const auto take = [&]() HWY_ATTR {
    const uint32_t l = static_cast<uint32_t>(w * 64) +
                       static_cast<uint32_t>(std::countr_zero(bits));
    bits &= bits - 1;
    return l;
  };
  while (count > 0) {
    while (bits == 0) bits = words[++w];
    const auto here = static_cast<size_t>(std::popcount(bits));
    const size_t written = (here + kStep - 1) / kStep * kStep;
    if (written > count) {
      *out++ = take();
      --count;
      continue;
    }
    // A few too many are written and then overwritten, which costs less than
    // a branch that cannot be foreseen.
    for (size_t i = 0; i < written; i += kStep) {
      for (size_t j = 0; j < kStep; ++j) out[i + j] = take();
    }
    out += here;
    count -= here;
  }
  cursor->word = w;
  cursor->bits = bits;
}

size_t MarkAbove(const float* values, const float* reference, size_t count,
                 uint32_t low, uint32_t high, uint64_t* words,
                 Candidates* candidates) {
  for (size_t w = 0; w < count; ++w) {
    if (candidates->room - candidates->count < 64) return w;
    uint64_t above = 0;
#if DFL_HAVE_VECTORS
    const size_t n = hn::Lanes(D32());
    const VI32 lowest = hn::Set(DI32(), static_cast<int32_t>(low));
    const VI32 highest = hn::Set(DI32(), static_cast<int32_t>(high));
    for (size_t i = 0; i < 64; i += n) {
      VF32 v = hn::LoadU(D32(), values + 64 * w + i);
      if (reference != nullptr) {
        v = hn::Sub(v, hn::LoadU(D32(), reference + 64 * w + i));
      }
      const VI32 magnitude = Magnitude(v);
      const auto over = hn::Lt(highest, magnitude);
      uint64_t bits = 0;
      hn::StoreMaskBits(DI32(), over, reinterpret_cast<uint8_t*>(&bits));
      above |= bits << i;
      const auto between = hn::Not(hn::Or(hn::Lt(magnitude, lowest), over));
      if (HWY_LIKELY(hn::AllFalse(DI32(), between))) continue;
      const VU32 coordinates =
          hn::Iota(DU32(), static_cast<uint32_t>(64 * w + i));
      const auto chosen = hn::RebindMask(DU32(), between);
      hn::CompressStore(hn::BitCast(DU32(), magnitude), chosen, DU32(),
                        candidates->magnitudes + candidates->count);
      candidates->count +=
          hn::CompressStore(coordinates, chosen, DU32(),
                            candidates->coordinates + candidates->count);
    }
#else
    for (size_t i = 0; i < 64; ++i) {
      const size_t l = 64 * w + i;
      const float v =
          reference == nullptr ? values[l] : values[l] - reference[l];
      const uint32_t magnitude = Bits(v) & kMagnitude;
      above |= uint64_t{magnitude > high} << i;
      if (magnitude < low || magnitude > high) continue;
      candidates->coordinates[candidates->count] = static_cast<uint32_t>(l);
      candidates->magnitudes[candidates->count++] = magnitude;
    }
#endif
    words[w] |= above;
  }
  return count;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace dfl::codec::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dfl::codec::kernels {

HWY_EXPORT(CountBits);
HWY_EXPORT(TakeBits);
HWY_EXPORT(MarkAbove);

int64_t CountBits(const uint64_t* words, size_t count) {
  return HWY_DYNAMIC_DISPATCH(CountBits)(words, count);
}

void TakeBits(const uint64_t* words, BitCursor* cursor, size_t count,
              uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(TakeBits)(words, cursor, count, out);
}

size_t MarkAbove(const float* values, const float* reference, size_t count,
                 uint32_t low, uint32_t high, uint64_t* words,
                 Candidates* candidates) {
  return HWY_DYNAMIC_DISPATCH(MarkAbove)(values, reference, count, low, high,
                                         words, candidates);
}

}  // namespace dfl::codec::kernels
#endif  // HWY_ONCE
