#include "daemon/core/vector/flat_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "daemon/core/vector/flat_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dfl::core::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void AddMeans(float* sum, int32_t* counts, size_t size, float* own) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto zero = hn::Zero(d);
  const auto one = hn::Set(di, 1);
  const size_t n = hn::Lanes(d);
  size_t i = 0;
  for (; i + n <= size; i += n) {
    const auto count = hn::LoadU(di, counts + i);
    if (hn::AllTrue(di, hn::Eq(count, hn::Zero(di)))) continue;
    auto mean = hn::LoadU(d, sum + i);
    if (!hn::AllFalse(di, hn::Lt(one, count))) {
      mean = hn::Div(mean, hn::ConvertTo(d, hn::Max(count, one)));
    }
    const auto mine = hn::LoadU(d, own + i);
    hn::StoreU(hn::IfThenElse(hn::Eq(mean, zero), mine, hn::Add(mine, mean)), d,
               own + i);
    hn::StoreU(zero, d, sum + i);
    hn::StoreU(hn::Zero(di), di, counts + i);
  }
  for (; i < size; ++i) {
    if (counts[i] == 0) continue;
    const float mean = sum[i] / static_cast<float>(counts[i]);
    if (mean != 0) own[i] += mean;
    sum[i] = 0;
    counts[i] = 0;
  }
}

void AddSums(float* sum, size_t size, float* own) {
  const hn::ScalableTag<float> d;
  const auto zero = hn::Zero(d);
  const size_t n = hn::Lanes(d);
  size_t i = 0;
  for (; i + n <= size; i += n) {
    const auto moved = hn::LoadU(d, sum + i);
    const auto still = hn::Eq(moved, zero);
    if (hn::AllTrue(d, still)) continue;
    const auto mine = hn::LoadU(d, own + i);
    hn::StoreU(hn::IfThenElse(still, mine, hn::Add(mine, moved)), d, own + i);
    hn::StoreU(zero, d, sum + i);
  }
  for (; i < size; ++i) {
    if (sum[i] != 0) own[i] += sum[i];
    sum[i] = 0;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace dfl::core::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dfl::core::kernels {

HWY_EXPORT(AddMeans);
HWY_EXPORT(AddSums);

void AddMeans(float* sum, int32_t* counts, size_t size, float* own) {
  HWY_DYNAMIC_DISPATCH(AddMeans)(sum, counts, size, own);
}

void AddSums(float* sum, size_t size, float* own) {
  HWY_DYNAMIC_DISPATCH(AddSums)(sum, size, own);
}

}  // namespace dfl::core::kernels
#endif  // HWY_ONCE
