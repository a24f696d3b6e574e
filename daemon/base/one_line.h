// Texts of others in lines of ours.
#ifndef DFL_BASE_ONE_LINE_H_
#define DFL_BASE_ONE_LINE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace dfl {

// `text` as one line that shows all it holds: newlines, control characters,
// what is no UTF-8, and characters that end lines or turn the direction of
// writing stand as \n, \x1b or \u202e. All else stays as it is.
std::string OneLine(absl::string_view text);

// The same with a ? for each of them, where columns count.
std::string OneLineMarked(absl::string_view text);

}  // namespace dfl

#endif  // DFL_BASE_ONE_LINE_H_
