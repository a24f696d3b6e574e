#include "daemon/web/meters.h"

#include <algorithm>

namespace dfl::web {

void TimeHistogram::Observe(absl::Duration took) {
  took = std::max(took, absl::ZeroDuration());
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(),
                                      absl::ToDoubleSeconds(took));
  buckets_[static_cast<size_t>(bound - kBounds.begin())].fetch_add(
      1, std::memory_order_relaxed);
  nanoseconds_.fetch_add(absl::ToInt64Nanoseconds(took),
                         std::memory_order_relaxed);
}

TimeHistogram::Values TimeHistogram::Read() const {
  Values values;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    values.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
    values.count += values.buckets[i];
  }
  values.sum =
      static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)) * 1e-9;
  return values;
}

}  // namespace dfl::web
