// Whether a CSV file starts with a header, and what each column is for.
// Room-internal.
#ifndef DFL_DATA_CSV_COLUMNS_H_
#define DFL_DATA_CSV_COLUMNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/data/data_spec.h"

namespace dfl {
namespace data {

// A line as text, with its number in the file.
struct CsvLine {
  std::string text;
  int64_t number = 0;
};

// Lines at the start of a file that decide about its header.
inline constexpr size_t kCsvLinesToJudge = 32;

// Whether the first of `lines` names the columns. It does if its fields are
// texts, in columns whose values below are numbers, or if it counts the columns
// (0, 1, 2, ... with at least four of them, or quoted). A column of words says
// nothing, and neither does a missing value.
// Errors: INVALID_ARGUMENT where names and values stand side by side, so that
// it may be a header or a damaged row.
absl::StatusOr<bool> StartsWithHeader(const DataSpec& spec,
                                      absl::Span<const CsvLine> lines,
                                      const std::string& path);

// Begins the name of a column without one, as pandas has it: "Unnamed: 0".
inline constexpr absl::string_view kNameless = "Unnamed: ";

struct CsvColumns {
  static constexpr int64_t kNone = -1;
  std::vector<std::string> names;   // of all columns; empty: no header
  size_t label = 0;                 // column of the label
  std::vector<int64_t> feature_of;  // [columns] the feature, or kNone
  int64_t features = 0;

  std::string NameOf(size_t column) const {
    return names.empty() ? std::string() : names[column];
  }
  // Names of the features in order; empty without a header.
  std::vector<std::string> FeatureNames() const;
  // Names of the columns that are neither feature nor label; likewise.
  std::vector<std::string> DroppedNames() const;
};

// The columns of a file of `width` columns, by the spec; `names` is its header
// or empty. Where `match` has names and the file, too, its columns are found by
// name and features have the order of `match`; indices are places in the file
// that was read first.
// Errors: INVALID_ARGUMENT for a column that is not there, is named twice or is
// used twice, and for columns other than those of `match`.
absl::StatusOr<CsvColumns> ChooseColumns(const DataSpec& spec,
                                         const ColumnMatch& match,
                                         std::vector<std::string> names,
                                         size_t width, const std::string& path,
                                         int64_t line);

// "data.drop_columns: [\"0\"]": how to leave out the column `column` of
// `columns`.
std::string DropCure(const CsvColumns& columns, size_t column);

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_CSV_COLUMNS_H_
