#include "daemon/core/vector/remote_vector.h"

#include <algorithm>
#include <array>

#include "daemon/base/check.h"
#include "daemon/core/vector/flat_kernels.h"

namespace dfl::core {

void RemoteVector::MoveOwn(CoordinateRange range, float weight,
                           absl::Span<float> own) {
  constexpr int64_t kBlock = 2048;
  std::array<float, kBlock> sum{};  // 0 between two blocks
  for (int64_t begin = range.begin; begin < range.end; begin += kBlock) {
    const CoordinateRange block{begin, std::min(range.end, begin + kBlock)};
    const auto size = static_cast<size_t>(block.size());
    const absl::Span<float> slice =
        own.subspan(static_cast<size_t>(begin - range.begin), size);
    AddDifference(block, slice, weight, absl::MakeSpan(sum.data(), size), {});
    kernels::AddSums(sum.data(), size, slice.data());
  }
}

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
