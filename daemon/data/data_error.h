// The one form of every error about a data file:
//   FILE: PLACE: what was found; allowed: what would have been right
#ifndef DFL_DATA_DATA_ERROR_H_
#define DFL_DATA_DATA_ERROR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace dfl {
namespace data {

// INVALID_ARGUMENT: the file is not what it should be.
inline absl::Status WrongContent(absl::string_view file,
                                 absl::string_view place,
                                 absl::string_view found,
                                 absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": ", place, ": ", found, "; allowed: ", allowed));
}

// DATA_LOSS: the file ends before it should.
inline absl::Status CutShort(absl::string_view file, absl::string_view place,
                             absl::string_view found,
                             absl::string_view allowed) {
  return absl::DataLossError(
      absl::StrCat(file, ": ", place, ": ", found, "; allowed: ", allowed));
}

inline std::string AtByte(uint64_t offset) {
  return absl::StrCat("byte ", offset);
}
inline std::string AtLine(int64_t line) { return absl::StrCat("line ", line); }
// Columns count from 1.
inline std::string AtColumn(int64_t line, int64_t column) {
  return absl::StrCat("line ", line, ", column ", column);
}

// 'token', printable and at most 40 bytes of it.
inline std::string Quoted(absl::string_view token) {
  const bool cut = token.size() > 40;
  return absl::StrCat("'", absl::CHexEscape(token.substr(0, 40)),
                      cut ? "...'" : "'");
}

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_DATA_ERROR_H_
