// rounding.h in vectors: the same grids and draws, many values at a time. Only
// value_kernels.cc includes this, once for each instruction set; hence the
// unusual guard. Targets without vectors get none: DFL_HAVE_VECTORS is 0.
//
// Doubles come in two halves, the lower and the upper values of a vector of
// floats.
#if defined(DFL_CODEC_ROUNDING_VECTORS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DFL_CODEC_ROUNDING_VECTORS_H_
#undef DFL_CODEC_ROUNDING_VECTORS_H_
#else
#define DFL_CODEC_ROUNDING_VECTORS_H_
#endif

#include "daemon/codec/rounding.h"
#include "hwy/highway.h"

#undef DFL_HAVE_VECTORS
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
#define DFL_HAVE_VECTORS 0
#else
#define DFL_HAVE_VECTORS 1
#endif

#if DFL_HAVE_VECTORS
HWY_BEFORE_NAMESPACE();
namespace dfl::codec::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::ScalableTag<float>;
using DI32 = hn::RebindToSigned<D32>;
using DU32 = hn::RebindToUnsigned<D32>;
using D64 = hn::RepartitionToWide<D32>;
using DU64 = hn::RepartitionToWide<DU32>;
using DHalf32 = hn::Half<D32>;
using DHalfI32 = hn::Half<DI32>;
using DHalfU32 = hn::Half<DU32>;
using DU16 = hn::Rebind<uint16_t, D32>;
using DF16 = hn::Rebind<hwy::float16_t, D32>;
using DI8 = hn::Rebind<int8_t, D32>;
using VF32 = hn::Vec<D32>;
using VI32 = hn::Vec<DI32>;
using VU32 = hn::Vec<DU32>;
using VF64 = hn::Vec<D64>;
using VU64 = hn::Vec<DU64>;

// A vector of D at any address.
template <class D>
HWY_INLINE hn::Vec<D> LoadBytes(D d, const char* p) {
  const hn::Repartition<uint8_t, D> bytes;
  return hn::BitCast(d, hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(p)));
}
template <class V>
HWY_INLINE void StoreBytes(V v, char* p) {
  const hn::Repartition<uint8_t, hn::DFromV<V>> bytes;
  hn::StoreU(hn::BitCast(bytes, v), bytes, reinterpret_cast<uint8_t*>(p));
}
// Numbers below 2^16, as 16 bits each.
HWY_INLINE void StoreHalves(VU32 v, char* p) {
  StoreBytes(hn::DemoteTo(DU16(), hn::BitCast(DI32(), v)), p);
}

HWY_INLINE VF32 LoadFp16(const char* codes) {
  return hn::PromoteTo(D32(), LoadBytes(DF16(), codes));
}
HWY_INLINE VF32 LoadBf16(const char* codes) {
  return hn::BitCast(D32(), hn::ShiftLeft<16>(hn::PromoteTo(
                                DU32(), LoadBytes(DU16(), codes))));
}
HWY_INLINE VI32 LoadInt8(const char* codes) {
  return hn::PromoteTo(DI32(), LoadBytes(DI8(), codes));
}

// RoundingDraw() of q, q + 1, ...
class Draws {
 public:
  HWY_INLINE Draws(uint64_t seed, uint64_t q) {
    HWY_ALIGN uint64_t even[hn::MaxLanes(DU64())];
    HWY_ALIGN uint64_t odd[hn::MaxLanes(DU64())];
    for (size_t i = 0; i < hn::Lanes(DU64()); ++i) {
      even[i] = seed + (q + 2 * i + 1) * kGolden;
      odd[i] = even[i] + kGolden;
    }
    even_ = hn::Load(DU64(), even);
    odd_ = hn::Load(DU64(), odd);
  }

  // As many as a vector has.
  HWY_INLINE VU32 Next() {
    const VU64 step = hn::Set(DU64(), hn::Lanes(DU32()) * kGolden);
    const VU64 even = Mixed(even_);
    const VU64 odd = Mixed(odd_);
    even_ = hn::Add(even_, step);
    odd_ = hn::Add(odd_, step);
    // The upper halves side by side, and what the last xor makes of them.
    const VU64 upper = hn::Set(DU64(), 0xFFFFFFFF00000000u);
    const VU32 both = hn::BitCast(
        DU32(), hn::Or(hn::ShiftRight<32>(even), hn::And(odd, upper)));
    return hn::Xor(both, hn::ShiftRight<31>(both));
  }

 private:
  static constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;

  // splitmix64 up to its last xor.
  static HWY_INLINE VU64 Mixed(VU64 x) {
    x = Times<0xBF58476D1CE4E5B9u>(hn::Xor(x, hn::ShiftRight<30>(x)));
    return Times<0x94D049BB133111EBu>(hn::Xor(x, hn::ShiftRight<27>(x)));
  }

  // x * kFactor modulo 2^64.
  template <uint64_t kFactor>
  static HWY_INLINE VU64 Times(VU64 x) {
    const VU32 low = hn::Set(DU32(), static_cast<uint32_t>(kFactor));
    const VU32 high = hn::Set(DU32(), static_cast<uint32_t>(kFactor >> 32));
    const VU32 x_low = hn::BitCast(DU32(), x);
    const VU32 x_high = hn::BitCast(DU32(), hn::ShiftRight<32>(x));
    const VU64 cross =
        hn::Add(hn::MulEven(x_high, low), hn::MulEven(x_low, high));
    return hn::Add(hn::MulEven(x_low, low), hn::ShiftLeft<32>(cross));
  }

  VU64 even_;
  VU64 odd_;
};

// -------------------------------------------------------------- doubles ----

HWY_INLINE VF64 LowerDoubles(VF32 v) {
  return hn::PromoteTo(D64(), hn::LowerHalf(DHalf32(), v));
}
HWY_INLINE VF64 UpperDoubles(VF32 v) {
  return hn::PromoteTo(D64(), hn::UpperHalf(DHalf32(), v));
}

// draw * kDrawUnit, exactly: the draw is put into the low bits of a 2^20.
HWY_INLINE VF64 Units(hn::Vec<DHalfU32> draw) {
  const VF64 base = hn::Set(D64(), 0x1.0p20);
  const VU64 bits =
      hn::Or(hn::PromoteTo(DU64(), draw), hn::BitCast(DU64(), base));
  return hn::Sub(hn::BitCast(D64(), bits), base);
}
HWY_INLINE VF64 LowerUnits(VU32 draw) {
  return Units(hn::LowerHalf(DHalfU32(), draw));
}
HWY_INLINE VF64 UpperUnits(VU32 draw) {
  return Units(hn::UpperHalf(DHalfU32(), draw));
}

// ---------------------------------------------------------------- grids ----

template <int kCut>
HWY_INLINE VI32 RoundMagnitude(VI32 magnitude, VU32 draw) {
  const VI32 infinity = hn::Set(DI32(), static_cast<int32_t>(kInfinity));
  const VI32 largest = hn::Set(DI32(), static_cast<int32_t>(kInfinity - 1));
  const VI32 cut = hn::Set(DI32(), (1 << kCut) - 1);
  const VI32 rounded =
      hn::Add(magnitude, hn::BitCast(DI32(), hn::ShiftRight<32 - kCut>(draw)));
  return hn::IfThenElse(hn::Lt(magnitude, infinity),
                        hn::AndNot(cut, hn::Min(rounded, largest)), magnitude);
}

HWY_INLINE VI32 Magnitude(VF32 v) {
  return hn::And(hn::BitCast(DI32(), v),
                 hn::Set(DI32(), static_cast<int32_t>(kMagnitude)));
}
// The bits of the sign of `v`, and no others.
HWY_INLINE VI32 SignOf(VF32 v) {
  return hn::And(hn::BitCast(DI32(), v),
                 hn::Set(DI32(), static_cast<int32_t>(kSign)));
}

HWY_INLINE VF32 RoundBf16(VF32 v, VU32 draw) {
  return hn::BitCast(D32(),
                     hn::Or(SignOf(v), RoundMagnitude<16>(Magnitude(v), draw)));
}

HWY_INLINE hn::Mask<DI32> IsSmallFp16(VI32 magnitude) {
  return hn::Lt(magnitude,
                hn::Set(DI32(), static_cast<int32_t>(kSmallestNormalFp16)));
}

// How many steps of fp16's fixed grid, for what is small.
HWY_INLINE VI32 SmallFp16Steps(VI32 magnitude, VU32 draw) {
  const VF64 steps = hn::Set(D64(), kFp16Steps);
  const VF32 v = hn::BitCast(D32(), magnitude);
  const auto low = hn::DemoteTo(
      DHalfI32(), hn::Add(hn::Mul(LowerDoubles(v), steps), LowerUnits(draw)));
  const auto high = hn::DemoteTo(
      DHalfI32(), hn::Add(hn::Mul(UpperDoubles(v), steps), UpperUnits(draw)));
  return hn::Combine(DI32(), high, low);
}

HWY_INLINE VF32 RoundFp16(VF32 v, VU32 draw) {
  const VI32 magnitude = Magnitude(v);
  VI32 rounded = RoundMagnitude<13>(magnitude, draw);
  const auto small = IsSmallFp16(magnitude);
  if (HWY_UNLIKELY(!hn::AllFalse(DI32(), small))) {
    const VF32 steps = hn::ConvertTo(D32(), SmallFp16Steps(magnitude, draw));
    const VF32 value = hn::Mul(steps, hn::Set(D32(), kFp16Step));
    rounded = hn::IfThenElse(small, hn::BitCast(DI32(), value), rounded);
  }
  return hn::BitCast(D32(), hn::Or(SignOf(v), rounded));
}

// PackFp16(RoundFp16(v, draw)).
HWY_INLINE VU32 EncodedFp16(VF32 v, VU32 draw) {
  const VI32 magnitude = Magnitude(v);
  const VI32 rounded = RoundMagnitude<13>(magnitude, draw);
  VI32 code =
      hn::Min(hn::ShiftRight<13>(hn::Sub(rounded, hn::Set(DI32(), 0x38000000))),
              hn::Set(DI32(), static_cast<int32_t>(kLargestFp16Code)));
  const auto small = IsSmallFp16(magnitude);
  if (HWY_UNLIKELY(!hn::AllFalse(DI32(), small))) {
    code = hn::IfThenElse(small, SmallFp16Steps(magnitude, draw), code);
  }
  return hn::Or(hn::ShiftRight<16>(hn::BitCast(DU32(), SignOf(v))),
                hn::BitCast(DU32(), code));
}

// ---------------------------------------------------------- differences ----

// `rounded` is the receiver's own value on the grid.
HWY_INLINE VF32 DifferenceFp16(VF32 remote, VF32 rounded) {
  const VF32 largest = hn::Set(D32(), kLargestFp16);
  // Towards the remote value's side.
  const VF32 outwards = hn::Xor(rounded, hn::BitCast(D32(), SignOf(remote)));
  const auto nothing_known =
      hn::And(hn::Eq(hn::Abs(remote), largest), hn::Ge(outwards, largest));
  return hn::IfThenZeroElse(nothing_known, hn::Sub(remote, rounded));
}

// `inverse` is 1 / scale.
HWY_INLINE VF32 DifferenceInt8(VI32 code, VF32 scale, VF64 inverse, VF32 own,
                               VU32 draw) {
  const VF64 low = hn::Mul(LowerDoubles(own), inverse);
  const VF64 high = hn::Mul(UpperDoubles(own), inverse);
  // Whole numbers below 2^24, so exact as floats.
  const VI32 rounded = hn::Combine(
      DI32(),
      hn::DemoteTo(DHalfI32(), hn::Floor(hn::Add(high, UpperUnits(draw)))),
      hn::DemoteTo(DHalfI32(), hn::Floor(hn::Add(low, LowerUnits(draw)))));
  const VF32 near =
      hn::Mul(hn::ConvertTo(D32(), hn::Sub(code, rounded)), scale);
  // "Not near" also catches NaN.
  const VF64 far_out = hn::Set(D64(), kFarOut);
  const auto low_near = hn::Lt(hn::Abs(low), far_out);
  const auto high_near = hn::Lt(hn::Abs(high), far_out);
  if (HWY_LIKELY(hn::AllTrue(D64(), hn::And(low_near, high_near)))) return near;
  // The masks of doubles become one of floats by way of 1 and 0.
  const VF64 one = hn::Set(D64(), 1.0);
  const VF32 is_near = hn::Combine(
      D32(), hn::DemoteTo(DHalf32(), hn::IfThenElseZero(high_near, one)),
      hn::DemoteTo(DHalf32(), hn::IfThenElseZero(low_near, one)));
  const VF32 far = hn::Sub(hn::Mul(hn::ConvertTo(D32(), code), scale), own);
  return hn::IfThenElse(hn::Eq(is_near, hn::Set(D32(), 1.0f)), near, far);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace dfl::codec::kernels
HWY_AFTER_NAMESPACE();
#endif  // DFL_HAVE_VECTORS

#endif  // guard for each target
