#include "daemon/learner/bad_batch.h"

#include <cstddef>
#include <vector>

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

std::string DescribeRows(const data::DatasetView& view, absl::string_view name,
                         absl::Span<const int64_t> rows,
                         const BatchTensors& batch) {
  std::vector<int64_t> numbers;
  for (const size_t i : batch.WildRows()) {
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
