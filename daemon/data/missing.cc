#include "daemon/data/missing.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "daemon/data/data_error.h"

namespace dfl {
namespace data {

absl::Status FillMissing(const DataSpec& spec, int64_t d,
                         const std::string& file, absl::Span<float> values,
                         Dataset::Columns* columns) {
  const auto width = static_cast<size_t>(d);
  const size_t rows = values.size() / width;
  std::vector<double> sums(width, 0.0);
  columns->missing.assign(width, 0);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      ++columns->missing[i % width];
    } else {
      sums[i % width] += static_cast<double>(values[i]);
    }
  }
  columns->fill.assign(width, 0.0f);
  if (spec.missing == Missing::kMean) {
    const bool told = spec.match.fill.size() == width;
    for (size_t j = 0; j < width; ++j) {
      const size_t seen = rows - static_cast<size_t>(columns->missing[j]);
      if (told) {
        columns->fill[j] = spec.match.fill[j];
        continue;
      }
      if (seen == 0) {
        return WrongContent(
            file, "all rows",
            absl::StrCat("feature ",
                         columns->names.empty() ? absl::StrCat(j)
                                                : Quoted(columns->names[j]),
                         " has no value in any row, so it has no mean"),
            "a value in some row; data.drop_columns leaves a column out");
      }
      columns->fill[j] =
          static_cast<float>(sums[j] / static_cast<double>(seen));
    }
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) values[i] = columns->fill[i % width];
  }
  return absl::OkStatus();
}

std::vector<bool> DropMissing(int64_t d, std::vector<float>* values,
                              Dataset::Columns* columns) {
  const auto width = static_cast<size_t>(d);
  const size_t rows = values->size() / width;
  std::vector<bool> kept(rows);
  size_t out = 0;
  for (size_t row = 0; row < rows; ++row) {
    const auto begin =
        values->begin() + static_cast<std::ptrdiff_t>(row * width);
    const auto end = begin + static_cast<std::ptrdiff_t>(width);
    kept[row] = std::none_of(begin, end, [](float x) { return std::isnan(x); });
    if (!kept[row]) continue;
    std::copy(begin, end,
              values->begin() + static_cast<std::ptrdiff_t>(out * width));
    ++out;
  }
  values->resize(out * width);
  columns->dropped_rows += static_cast<int64_t>(rows - out);
  return kept;
}

}  // namespace data
}  // namespace dfl
