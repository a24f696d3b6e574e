#include "daemon/codec/value_kernels.h"

#include <algorithm>

#include "daemon/codec/rounding.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "daemon/codec/value_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h.
#include "daemon/codec/rounding_vectors.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dfl::codec::kernels {
namespace HWY_NAMESPACE {

// Each loop does whole vectors first and the rest as rounding.h says, one by
// one.

void AddOnes(int32_t* counts, size_t count) {
  size_t k = 0;
#if DFL_HAVE_VECTORS
  const size_t n = hn::Lanes(DI32());
  const VI32 one = hn::Set(DI32(), 1);
  for (; k + n <= count; k += n) {
    hn::StoreU(hn::Add(hn::LoadU(DI32(), counts + k), one), DI32(), counts + k);
  }
#endif
  for (; k < count; ++k) counts[k] += 1;
}

uint32_t LargestBits32(const char* values, size_t count) {
  size_t k = 0;
  uint32_t largest = 0;
#if DFL_HAVE_VECTORS
  const D32 d;
  const DI32 di;
  // Four, so that no maximum waits for the one before.
  VI32 most0 = hn::Zero(di);
  VI32 most1 = most0;
  VI32 most2 = most0;
  VI32 most3 = most0;
  const VI32 mask = hn::Set(di, kMagnitude);
  const size_t n = hn::Lanes(d);
  const auto at = [&](size_t i) HWY_ATTR {
    return hn::And(LoadBytes(di, values + 4 * (k + i * n)), mask);
  };
  for (; k + 4 * n <= count; k += 4 * n) {
    most0 = hn::Max(most0, at(0));
    most1 = hn::Max(most1, at(1));
    most2 = hn::Max(most2, at(2));
    most3 = hn::Max(most3, at(3));
  }
  largest = static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(
      di, hn::Max(hn::Max(most0, most1), hn::Max(most2, most3)))));
#endif
  for (; k < count; ++k) {
    largest = std::max(largest, Load<uint32_t>(values + 4 * k) & kMagnitude);
  }
  return largest;
}

uint32_t LargestBits16(const char* values, size_t count) {
  size_t k = 0;
  uint32_t largest = 0;
#if DFL_HAVE_VECTORS
  const hn::ScalableTag<int16_t> d;
  const size_t n = hn::Lanes(d);
  const auto mask = hn::Set(d, 0x7FFF);
  auto even = hn::Zero(d);
  auto odd = hn::Zero(d);
  for (; k + 2 * n <= count; k += 2 * n) {
    even = hn::Max(even, hn::And(LoadBytes(d, values + 2 * k), mask));
    odd = hn::Max(odd, hn::And(LoadBytes(d, values + 2 * (k + n)), mask));
  }
  int16_t lanes[hn::MaxLanes(d)];
  hn::StoreU(hn::Max(even, odd), d, lanes);
  for (size_t i = 0; i < n; ++i) {
    largest = std::max(largest, static_cast<uint32_t>(lanes[i]));
  }
#endif
  for (; k < count; ++k) {
    largest =
        std::max<uint32_t>(largest, Load<uint16_t>(values + 2 * k) & 0x7FFFu);
  }
  return largest;
}

void EncodeFp16(Rounding rounding, const float* values, size_t count,
                char* codes) {
  size_t k = 0;
#if DFL_HAVE_VECTORS
  Draws draws(rounding.seed, rounding.q);
  const size_t n = hn::Lanes(D32());
  for (; k + n <= count; k += n) {
    StoreHalves(EncodedFp16(hn::LoadU(D32(), values + k), draws.Next()),
                codes + 2 * k);
  }
#endif
  for (; k < count; ++k) {
    const uint32_t draw = RoundingDraw(rounding.seed, rounding.q + k);
    Store(PackFp16(codec::RoundFp16(values[k], draw)), codes + 2 * k);
  }
}

void EncodeBf16(Rounding rounding, const float* values, size_t count,
                char* codes) {
  size_t k = 0;
#if DFL_HAVE_VECTORS
  Draws draws(rounding.seed, rounding.q);
  const size_t n = hn::Lanes(D32());
  for (; k + n <= count; k += n) {
    const VF32 rounded = RoundBf16(hn::LoadU(D32(), values + k), draws.Next());
    StoreHalves(hn::ShiftRight<16>(hn::BitCast(DU32(), rounded)),
                codes + 2 * k);
  }
#endif
  for (; k < count; ++k) {
    const uint32_t draw = RoundingDraw(rounding.seed, rounding.q + k);
    Store(PackBf16(codec::RoundBf16(values[k], draw)), codes + 2 * k);
  }
}

void EncodeInt8(Rounding rounding, float scale, const float* values,
                size_t count, char* codes) {
  size_t k = 0;
  const double inverse = 1.0 / static_cast<double>(scale);
#if DFL_HAVE_VECTORS
  Draws draws(rounding.seed, rounding.q);
  const VF64 factor = hn::Set(D64(), inverse);
  const size_t n = hn::Lanes(D32());
  for (; k + n <= count; k += n) {
    const VF32 v = hn::LoadU(D32(), values + k);
    const VU32 draw = draws.Next();
    const auto steps = [&](VF64 half, VF64 unit) HWY_ATTR {
      return hn::DemoteTo(DHalfI32(),
                          hn::Floor(hn::Add(hn::Mul(half, factor), unit)));
    };
    const auto low = steps(LowerDoubles(v), LowerUnits(draw));
    const auto high = steps(UpperDoubles(v), UpperUnits(draw));
    StoreBytes(hn::DemoteTo(DI8(), hn::Combine(DI32(), high, low)), codes + k);
  }
#endif
  for (; k < count; ++k) {
    const int32_t code =
        RoundSteps(static_cast<double>(values[k]) * inverse,
                   RoundingDraw(rounding.seed, rounding.q + k));
    codes[k] = static_cast<char>(static_cast<int8_t>(code));
  }
}

void DecodeFp16(const char* codes, size_t count, float* values) {
  size_t k = 0;
#if DFL_HAVE_VECTORS
  const size_t n = hn::Lanes(D32());
  for (; k + n <= count; k += n) {
    hn::StoreU(LoadFp16(codes + 2 * k), D32(), values + k);
  }
#endif
  for (; k < count; ++k) values[k] = UnpackFp16(Load<uint16_t>(codes + 2 * k));
}

void DecodeBf16(const char* codes, size_t count, float* values) {
  size_t k = 0;
#if DFL_HAVE_VECTORS
  const size_t n = hn::Lanes(D32());
  for (; k + n <= count; k += n) {
    hn::StoreU(LoadBf16(codes + 2 * k), D32(), values + k);
  }
#endif
  for (; k < count; ++k) values[k] = UnpackBf16(Load<uint16_t>(codes + 2 * k));
}

void DecodeInt8(float scale, const char* codes, size_t count, float* values) {
  size_t k = 0;
#if DFL_HAVE_VECTORS
  const size_t n = hn::Lanes(D32());
  const VF32 step = hn::Set(D32(), scale);
  for (; k + n <= count; k += n) {
    hn::StoreU(hn::Mul(hn::ConvertTo(D32(), LoadInt8(codes + k)), step), D32(),
               values + k);
  }
#endif
  for (; k < count; ++k) {
    values[k] = static_cast<float>(static_cast<int8_t>(codes[k])) * scale;
  }
}

// ------------------------------------------------------------ differences ----

// Puts into the sink what `vectors` gives for (k, own values from k on), and
// `one`, for (k, own value), for the rest.
#if DFL_HAVE_VECTORS
template <class Vectors, class One>
HWY_INLINE void ForEachOwn(const Sink& sink, size_t count, Vectors vectors,
                           One one) {
  size_t k = 0;
  const size_t n = hn::Lanes(D32());
  const VF32 weight = hn::Set(D32(), sink.weight);
  for (; k + n <= count; k += n) {
    const VF32 own = hn::LoadU(D32(), sink.own + k);
    VF32 moved = hn::Mul(weight, vectors(k, own));
    if (sink.mode == Sink::Mode::kAdd) {
      moved = hn::Add(hn::LoadU(D32(), sink.out + k), moved);
    } else if (sink.mode == Sink::Mode::kMove) {
      moved = hn::IfThenElse(hn::Eq(moved, hn::Zero(D32())), own,
                             hn::Add(own, moved));
    }
    hn::StoreU(moved, D32(), sink.out + k);
  }
#else
template <class One>
void ForEachOwn(const Sink& sink, size_t count, One one) {
  size_t k = 0;
#endif
  for (; k < count; ++k) {
    const float own = sink.own[k];
    float moved = sink.weight * one(k, own);
    if (sink.mode == Sink::Mode::kAdd) {
      moved = sink.out[k] + moved;
    } else if (sink.mode == Sink::Mode::kMove) {
      moved = moved == 0 ? own : own + moved;
    }
    sink.out[k] = moved;
  }
}

void DifferencesFp32(const char* codes, size_t count, const Sink& sink) {
  ForEachOwn(
      sink, count,
#if DFL_HAVE_VECTORS
      [&](size_t k, VF32 own)
          HWY_ATTR { return hn::Sub(LoadBytes(D32(), codes + 4 * k), own); },
#endif
      [&](size_t k, float own)
          HWY_ATTR { return Load<float>(codes + 4 * k) - own; });
}

void DifferencesFp16(Rounding rounding, const char* codes, size_t count,
                     const Sink& sink) {
#if DFL_HAVE_VECTORS
  Draws draws(rounding.seed, rounding.q);
#endif
  ForEachOwn(
      sink, count,
#if DFL_HAVE_VECTORS
      [&](size_t k, VF32 own) HWY_ATTR {
        return DifferenceFp16(LoadFp16(codes + 2 * k),
                              RoundFp16(own, draws.Next()));
      },
#endif
      [&](size_t k, float own) HWY_ATTR {
        return codec::DifferenceFp16(
            Load<uint16_t>(codes + 2 * k), own,
            RoundingDraw(rounding.seed, rounding.q + k));
      });
}

void DifferencesBf16(Rounding rounding, const char* codes, size_t count,
                     const Sink& sink) {
#if DFL_HAVE_VECTORS
  Draws draws(rounding.seed, rounding.q);
#endif
  ForEachOwn(
      sink, count,
#if DFL_HAVE_VECTORS
      [&](size_t k, VF32 own) HWY_ATTR {
        return hn::Sub(LoadBf16(codes + 2 * k), RoundBf16(own, draws.Next()));
      },
#endif
      [&](size_t k, float own) HWY_ATTR {
        return codec::DifferenceBf16(
            Load<uint16_t>(codes + 2 * k), own,
            RoundingDraw(rounding.seed, rounding.q + k));
      });
}

void DifferencesInt8(Rounding rounding, float scale, const char* codes,
                     size_t count, const Sink& sink) {
  const double inverse = 1.0 / static_cast<double>(scale);
#if DFL_HAVE_VECTORS
  Draws draws(rounding.seed, rounding.q);
  const VF64 factor = hn::Set(D64(), inverse);
  const VF32 step = hn::Set(D32(), scale);
#endif
  ForEachOwn(
      sink, count,
#if DFL_HAVE_VECTORS
      [&](size_t k, VF32 own) HWY_ATTR {
        return DifferenceInt8(LoadInt8(codes + k), step, factor, own,
                              draws.Next());
      },
#endif
      [&](size_t k, float own) HWY_ATTR {
        return codec::DifferenceInt8(
            static_cast<int8_t>(codes[k]), scale, inverse, own,
            RoundingDraw(rounding.seed, rounding.q + k));
      });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace dfl::codec::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dfl::codec::kernels {

HWY_EXPORT(AddOnes);
HWY_EXPORT(LargestBits32);
HWY_EXPORT(LargestBits16);
HWY_EXPORT(EncodeFp16);
HWY_EXPORT(EncodeBf16);
HWY_EXPORT(EncodeInt8);
HWY_EXPORT(DecodeFp16);
HWY_EXPORT(DecodeBf16);
HWY_EXPORT(DecodeInt8);
HWY_EXPORT(DifferencesFp32);
HWY_EXPORT(DifferencesFp16);
HWY_EXPORT(DifferencesBf16);
HWY_EXPORT(DifferencesInt8);

void AddOnes(int32_t* counts, size_t count) {
  HWY_DYNAMIC_DISPATCH(AddOnes)(counts, count);
}

uint32_t LargestBits32(const char* values, size_t count) {
  return HWY_DYNAMIC_DISPATCH(LargestBits32)(values, count);
}
uint32_t LargestBits16(const char* values, size_t count) {
  return HWY_DYNAMIC_DISPATCH(LargestBits16)(values, count);
}

void EncodeFp16(Rounding rounding, const float* values, size_t count,
                char* codes) {
  HWY_DYNAMIC_DISPATCH(EncodeFp16)(rounding, values, count, codes);
}
void EncodeBf16(Rounding rounding, const float* values, size_t count,
                char* codes) {
  HWY_DYNAMIC_DISPATCH(EncodeBf16)(rounding, values, count, codes);
}
void EncodeInt8(Rounding rounding, float scale, const float* values,
                size_t count, char* codes) {
  HWY_DYNAMIC_DISPATCH(EncodeInt8)(rounding, scale, values, count, codes);
}

void DecodeFp16(const char* codes, size_t count, float* values) {
  HWY_DYNAMIC_DISPATCH(DecodeFp16)(codes, count, values);
}
void DecodeBf16(const char* codes, size_t count, float* values) {
  HWY_DYNAMIC_DISPATCH(DecodeBf16)(codes, count, values);
}
void DecodeInt8(float scale, const char* codes, size_t count, float* values) {
  HWY_DYNAMIC_DISPATCH(DecodeInt8)(scale, codes, count, values);
}

void DifferencesFp32(const char* codes, size_t count, const Sink& sink) {
  HWY_DYNAMIC_DISPATCH(DifferencesFp32)(codes, count, sink);
}
void DifferencesFp16(Rounding rounding, const char* codes, size_t count,
                     const Sink& sink) {
  HWY_DYNAMIC_DISPATCH(DifferencesFp16)(rounding, codes, count, sink);
}
void DifferencesBf16(Rounding rounding, const char* codes, size_t count,
                     const Sink& sink) {
  HWY_DYNAMIC_DISPATCH(DifferencesBf16)(rounding, codes, count, sink);
}
void DifferencesInt8(Rounding rounding, float scale, const char* codes,
                     size_t count, const Sink& sink) {
  HWY_DYNAMIC_DISPATCH(DifferencesInt8)(rounding, scale, codes, count, sink);
}

}  // namespace dfl::codec::kernels
#endif  // HWY_ONCE
