// Texts that come from files and go into documents and messages.
#ifndef DFL_BASE_UTF8_H_
#define DFL_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace dfl {

// A character at the start of a text.
struct Utf8Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: the first byte begins none
};

// The first character of `text`, which is not empty. None begins with a stray
// or missing byte, an overlong form, a surrogate, or beyond U+10FFFF.
Utf8Character FirstCharacter(absl::string_view text);

// Whether `text` is well-formed UTF-8.
bool IsUtf8(absl::string_view text);

// The first `bytes` of `text`, or up to three fewer where they would end within
// a character.
absl::string_view StartOf(absl::string_view text, size_t bytes);

}  // namespace dfl

#endif  // DFL_BASE_UTF8_H_
