#include "daemon/core/vector/remote_vector.h"

#include <algorithm>

#include "daemon/base/check.h"

namespace dfl::core {

PlainRemoteVector::PlainRemoteVector(std::vector<float> values)
    : n_(static_cast<int64_t>(values.size())),
      dense_(true),
      values_(std::move(values)) {}

PlainRemoteVector::PlainRemoteVector(int64_t n,
                                     std::vector<int64_t> coordinates,
                                     std::vector<float> values)
    : n_(n),
      dense_(false),
      coordinates_(std::move(coordinates)),
      values_(std::move(values)) {
  DFL_CHECK(coordinates_.size() == values_.size());
  DFL_CHECK(std::is_sorted(coordinates_.begin(), coordinates_.end()));
}

void PlainRemoteVector::AddDifference(CoordinateRange range,
                                      absl::Span<const float> own, float weight,
                                      absl::Span<float> sum,
                                      absl::Span<int32_t> counts) {
  const bool counting = !counts.empty();
  const auto add = [&](int64_t i, float value) {
    sum[i] += weight * (value - own[i]);
    if (counting) counts[i] += 1;
  };
  if (dense_) {
    for (int64_t i = 0; i < range.size(); ++i) {
      add(i, values_[range.begin + i]);
    }
    return;
  }
  auto it =
      std::lower_bound(coordinates_.begin(), coordinates_.end(), range.begin);
  for (; it != coordinates_.end() && *it < range.end; ++it) {
    add(*it - range.begin, values_[it - coordinates_.begin()]);
  }
}

}  // namespace dfl::core
