// Labels as files spell them, and the numbers that a data set gives them.
#ifndef DFL_DATA_LABELS_H_
#define DFL_DATA_LABELS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/data/data_spec.h"
#include "daemon/data/dataset.h"

namespace dfl {
namespace data {

// The classes of a data set that holds the labels `found` (canonical, each
// once): 0 to classes - 1 if all of them lie there, else what was found, in
// order.
std::vector<std::string> ClassesOf(std::vector<std::string> found,
                                   int64_t classes);

// `answers` with the classes `names` (canonical, or as stated) in place of its
// own.
// Errors: INVALID_ARGUMENT names a label that a row has and `names` lacks, with
// its place; `source` says where the names come from.
absl::StatusOr<Dataset::Answers> Renumbered(
    const Dataset::Answers& answers, const std::vector<std::string>& names,
    absl::string_view source);

// The classes that some row has, in the data set's own order.
std::vector<std::string> FoundClasses(const Dataset& dataset);

// "a, b, c", shortened after 20 of them.
std::string SomeOf(const std::vector<std::string>& names);

// Turns spellings of labels into numbers 0..classes-1; see
// DataSpec::label_values for the rules. A data set may hold one class only.
class LabelCollector {
 public:
  explicit LabelCollector(const DataSpec& spec);

  // Where a label stands in its file: "line 3, column 5".
  using Place = absl::FunctionRef<std::string()>;

  // The next row's label, found at `place` of `file`.
  // Errors: INVALID_ARGUMENT for one not in label_values, or more than
  // kMaxClasses different labels.
  absl::Status Add(absl::string_view token, const std::string& file,
                   Place place);

  // Whether label_values holds `token`.
  bool IsStated(absl::string_view token) const;

  // Numbers the labels.
  // Errors: INVALID_ARGUMENT when they do not fit spec.classes.
  absl::StatusOr<Dataset::Answers> Finish();

 private:
  struct Value {
    int64_t id;  // order of first appearance; label_values: the class
    std::string first_place;  // FILE: PLACE; "": not seen
  };

  absl::StatusOr<Dataset::Answers> FinishInOrder();

  const DataSpec& spec_;
  std::map<std::string, Value, std::less<>> values_;  // by canonical spelling
  std::vector<int64_t> ids_;                          // [rows]
};

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_LABELS_H_
