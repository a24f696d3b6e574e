// One line of a CSV file into fields (RFC 4180, fields within one line).
#ifndef DFL_DATA_CSV_H_
#define DFL_DATA_CSV_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace dfl {
namespace data {

// Splits `line` at `delimiter`. "..." quotes a field, and "" inside it is a
// quote. White space around a field is dropped. The fields point into `line` or
// `*scratch` and are valid until either changes.
// Returns null, or what is wrong with the last field in `*fields`.
const char* SplitCsvLine(absl::string_view line, char delimiter,
                         std::string* scratch,
                         std::vector<absl::string_view>* fields);

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_CSV_H_
