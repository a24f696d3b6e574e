#include "daemon/core/vector/flat_vector.h"

#include <algorithm>
#include <array>

#include "daemon/base/check.h"
#include "daemon/core/vector/flat_kernels.h"

namespace dfl::core {
namespace {

constexpr int64_t kBlock = 2048;

// Calls f(range, own's slice) for block after block.
template <typename F>
void ForEachBlock(absl::Span<float> own, F f) {
  const auto n = static_cast<int64_t>(own.size());
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    f(CoordinateRange{begin, end}, own.subspan(begin, end - begin));
  }
}

}  // namespace

void AddScaled(float a, absl::Span<const float> x, absl::Span<float> y) {
  DFL_CHECK(x.size() == y.size());
  const float* from = x.data();
  float* to = y.data();
  const size_t n = y.size();
  for (size_t l = 0; l < n; ++l) to[l] += a * from[l];
}

void AddValues(RemoteVector& vector, double weight, absl::Span<float> sum) {
  // The difference to 0, which every format writes as 0.
  constexpr std::array<float, kBlock> kZeros{};
  ForEachBlock(sum, [&](CoordinateRange range, absl::Span<float> slice) {
    vector.AddDifference(range,
                         absl::MakeConstSpan(kZeros.data(), slice.size()),
                         static_cast<float>(weight), slice, {});
  });
}

void SetWhereNotZero(absl::Span<const float> x, absl::Span<float> y) {
  DFL_CHECK(x.size() == y.size());
  for (size_t l = 0; l < y.size(); ++l) {
    if (x[l] != 0) y[l] = x[l];
  }
}

void PartialMean(absl::Span<RemoteVector* const> messages,
                 absl::Span<float> own) {
  if (messages.empty()) return;
  if (messages.size() == 1) {
    messages[0]->MoveOwn({0, static_cast<int64_t>(own.size())}, 1.0F, own);
    return;
  }
  // 0 between two blocks.
  alignas(64) std::array<float, kBlock> sum{};
  alignas(64) std::array<int32_t, kBlock> counts{};
  ForEachBlock(own, [&](CoordinateRange range, absl::Span<float> slice) {
    const size_t size = slice.size();
    for (RemoteVector* message : messages) {
      message->AddDifference(range, slice, 1.0F,
                             absl::MakeSpan(sum.data(), size),
                             absl::MakeSpan(counts.data(), size));
    }
    kernels::AddMeans(sum.data(), counts.data(), size, slice.data());
  });
}

Distance DistanceTo(RemoteVector& vector, absl::Span<const float> own) {
  Distance distance;
  std::array<float, kBlock> difference;
  const auto n = static_cast<int64_t>(own.size());
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const CoordinateRange range{begin, std::min(n, begin + kBlock)};
    const auto size = static_cast<size_t>(range.size());
    const absl::Span<const float> slice =
        own.subspan(static_cast<size_t>(begin), size);
    std::fill_n(difference.begin(), size, 0.0F);
    vector.AddDifference(range, slice, 1.0F,
                         absl::MakeSpan(difference.data(), size), {});
    double squares = 0;
    double own_squares = 0;
    for (size_t i = 0; i < size; ++i) {
      squares += static_cast<double>(difference[i]) * difference[i];
      own_squares += static_cast<double>(slice[i]) * slice[i];
    }
    distance.squares += squares;
    distance.own_squares += own_squares;
  }
  return distance;
}

void MixDifferences(absl::Span<const WeightedVector> vectors,
                    absl::Span<float> own) {
  if (vectors.empty()) return;
  if (vectors.size() == 1) {
    vectors[0].vector->MoveOwn({0, static_cast<int64_t>(own.size())},
                               static_cast<float>(vectors[0].weight), own);
    return;
  }
  alignas(64) std::array<float, kBlock> sum{};  // 0 between two blocks
  ForEachBlock(own, [&](CoordinateRange range, absl::Span<float> slice) {
    const size_t size = slice.size();
    for (const WeightedVector& v : vectors) {
      v.vector->AddDifference(range, slice, static_cast<float>(v.weight),
                              absl::MakeSpan(sum.data(), size), {});
    }
    kernels::AddSums(sum.data(), size, slice.data());
  });
}

}  // namespace dfl::core
