#include "daemon/learner/catalogue/bad_batch.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace dfl::learner {
namespace {

// "row 3", "rows 3, 17 and 30 more".
std::string Numbers(const std::vector<int64_t>& numbers) {
  constexpr size_t kMost = 8;
  const size_t shown = numbers.size() <= kMost ? numbers.size() : kMost;
  const absl::Span<const int64_t> all(numbers);
  return absl::StrCat(
      numbers.size() == 1 ? "row " : "rows ",
      absl::StrJoin(all.first(shown), ", "),
      shown < numbers.size()
          ? absl::StrCat(" and ", numbers.size() - shown, " more")
          : "");
}

}  // namespace

std::vector<size_t> WildRows(absl::Span<const float> values, size_t row_size,
                             absl::Span<const float> targets) {
  const auto wild = [](float value) {
    constexpr float kLargest = 1e15F;  // its square is finite
    return !(std::fabs(value) <= kLargest);
  };
  std::vector<size_t> rows;
  for (size_t i = 0; i < values.size() / row_size; ++i) {
    const absl::Span<const float> row = values.subspan(i * row_size, row_size);
    if (std::any_of(row.begin(), row.end(), wild) ||
        (i < targets.size() && wild(targets[i]))) {
      rows.push_back(i);
    }
  }
  return rows;
}

std::string DescribeRows(const data::DatasetView& view, absl::string_view name,
                         absl::Span<const int64_t> rows,
                         absl::Span<const size_t> wild) {
  std::vector<int64_t> numbers;
  for (const size_t i : wild) {
    if (i < rows.size()) numbers.push_back(view.row(rows[i]));
  }
  if (!numbers.empty()) {
    return absl::StrCat(Numbers(numbers), " of the ", name,
                        " data (counted from 0) ",
                        numbers.size() == 1 ? "holds" : "hold",
                        " values that are not finite or far too large");
  }
  for (const int64_t row : rows) numbers.push_back(view.row(row));
  return absl::StrCat("the batch is ", Numbers(numbers), " of the ", name,
                      " data (counted from 0)");
}

}  // namespace dfl::learner
