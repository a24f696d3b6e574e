#include "daemon/data/batch.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "daemon/base/check.h"

namespace dfl {
namespace data {
namespace {

using ByteTable = std::array<float, 256>;

ByteTable UnitTable(float divide) {
  ByteTable table;
  for (size_t v = 0; v < 256; ++v) table[v] = static_cast<float>(v) / divide;
  return table;
}

ByteTable TableOf(float divide, float mean, float std) {
  ByteTable table = UnitTable(divide);
  for (float& x : table) x = (x - mean) / std;
  return table;
}

// Value of row `i`, as a data set row number.
size_t CheckedRow(const DatasetView& view, int64_t i) {
  DFL_CHECK(i >= 0 && i < view.size());
  return static_cast<size_t>(view.row(i));
}

}  // namespace

void FillBatch(const DatasetView& view, absl::Span<const int64_t> indices,
               const Standardizer& standardizer, absl::Span<float> out) {
  const Dataset& dataset = view.dataset();
  const size_t d = static_cast<size_t>(dataset.row_size());
  DFL_CHECK(out.size() == indices.size() * d);
  DFL_CHECK(standardizer.CheckFits(dataset).ok());
  const float* const mean = standardizer.mean().data();
  const float* const std = standardizer.std().data();
  const auto divide = static_cast<float>(standardizer.DivideOf(dataset));
  const size_t groups = standardizer.mean().size();
  // A group of features that share mean and std; at least 1 value.
  const size_t group_size = groups == 0 ? d : d / groups;

  if (!dataset.has_bytes()) {
    for (size_t b = 0; b < indices.size(); ++b) {
      const float* x =
          dataset.floats().data() + CheckedRow(view, indices[b]) * d;
      float* const y = out.data() + b * d;
      if (divide != 1.0f) {
        for (size_t j = 0; j < d; ++j) y[j] = x[j] / divide;
        x = y;
      }
      if (groups == 0) {
        if (x != y) std::memcpy(y, x, d * sizeof(float));
      } else if (groups == d) {
        for (size_t j = 0; j < d; ++j) y[j] = (x[j] - mean[j]) / std[j];
      } else {
        for (size_t g = 0; g < groups; ++g) {
          const float m = mean[g];
          const float s = std[g];
          for (size_t j = g * group_size; j < (g + 1) * group_size; ++j) {
            y[j] = (x[j] - m) / s;
          }
        }
      }
    }
    return;
  }

  if (group_size >= 64) {
    // 256 divisions a channel instead of one a value.
    for (size_t g = 0; g < std::max<size_t>(groups, 1); ++g) {
      const ByteTable table =
          groups == 0 ? UnitTable(divide) : TableOf(divide, mean[g], std[g]);
      for (size_t b = 0; b < indices.size(); ++b) {
        const size_t begin = g * group_size;
        const uint8_t* const x =
            dataset.bytes().data() + CheckedRow(view, indices[b]) * d + begin;
        float* const y = out.data() + b * d + begin;
        for (size_t j = 0; j < group_size; ++j) y[j] = table[x[j]];
      }
    }
    return;
  }
  const ByteTable unit = UnitTable(divide);
  for (size_t b = 0; b < indices.size(); ++b) {
    const uint8_t* const x =
        dataset.bytes().data() + CheckedRow(view, indices[b]) * d;
    float* const y = out.data() + b * d;
    for (size_t j = 0; j < d; ++j) y[j] = unit[x[j]];
    if (groups == d) {
      for (size_t j = 0; j < d; ++j) y[j] = (y[j] - mean[j]) / std[j];
    } else if (groups > 0) {
      for (size_t j = 0; j < d; ++j) {
        y[j] = (y[j] - mean[j / group_size]) / std[j / group_size];
      }
    }
  }
}

void FillLabels(const DatasetView& view, absl::Span<const int64_t> indices,
                absl::Span<int64_t> out) {
  DFL_CHECK(!view.dataset().is_regression());
  DFL_CHECK(out.size() == indices.size());
  const absl::Span<const int64_t> labels = view.dataset().labels();
  for (size_t b = 0; b < indices.size(); ++b) {
    out[b] = labels[CheckedRow(view, indices[b])];
  }
}

void FillTargets(const DatasetView& view, absl::Span<const int64_t> indices,
                 absl::Span<float> out) {
  DFL_CHECK(view.dataset().is_regression());
  DFL_CHECK(out.size() == indices.size());
  const absl::Span<const float> targets = view.dataset().targets();
  for (size_t b = 0; b < indices.size(); ++b) {
    out[b] = targets[CheckedRow(view, indices[b])];
  }
}

}  // namespace data
}  // namespace dfl
