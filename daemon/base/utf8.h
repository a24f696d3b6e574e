// Texts that come from files and go into documents and messages.
#ifndef DFL_BASE_UTF8_H_
#define DFL_BASE_UTF8_H_

#include "absl/strings/string_view.h"

namespace dfl {

// Whether `text` is well-formed UTF-8: no stray, missing or overlong bytes, no
// surrogates, nothing above U+10FFFF.
bool IsUtf8(absl::string_view text);

}  // namespace dfl

#endif  // DFL_BASE_UTF8_H_
