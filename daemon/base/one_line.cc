#include "daemon/base/one_line.h"

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/utf8.h"

namespace dfl {
namespace {

bool IsHidden(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) ||
         (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF;
}

std::string Escaped(uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  return code < 0x80 ? absl::StrCat("\\x", absl::Hex(code, absl::kZeroPad2))
                     : absl::StrCat("\\u", absl::Hex(code, absl::kZeroPad4));
}

std::string EscapedByte(char byte) {
  return absl::StrCat("\\x",
                      absl::Hex(static_cast<uint8_t>(byte), absl::kZeroPad2));
}

// `text` with `byte(b)` for a byte of no character, and `hidden(code)` for a
// character that does not show.
std::string Replaced(absl::string_view text,
                     absl::FunctionRef<std::string(char)> byte,
                     absl::FunctionRef<std::string(uint32_t)> hidden) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character next = FirstCharacter(text);
    if (next.bytes == 0) {
      absl::StrAppend(&out, byte(text[0]));
      text.remove_prefix(1);
      continue;
    }
    if (IsHidden(next.code)) {
      absl::StrAppend(&out, hidden(next.code));
    } else {
      absl::StrAppend(&out, text.substr(0, next.bytes));
    }
    text.remove_prefix(next.bytes);
  }
  return out;
}

}  // namespace

std::string OneLine(absl::string_view text) {
  return Replaced(text, EscapedByte, Escaped);
}

std::string OneLineMarked(absl::string_view text) {
  return Replaced(
      text, [](char) { return std::string("?"); },
      [](uint32_t) { return std::string("?"); });
}

}  // namespace dfl
