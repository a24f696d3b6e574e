#include "daemon/base/one_line.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace dfl {
namespace {

// A character at the start of a text.
struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: the first byte begins none
};

Character Decode(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {};
  uint32_t code = first & (0x7FU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  // Longer than needed, half of a pair, or beyond the last one.
  if ((bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000) ||
      (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) {
    return {};
  }
  return {code, bytes};
}

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

}  // namespace

std::string OneLine(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = Decode(text);
    if (next.bytes == 0) {
      absl::StrAppend(
          &out, "\\x",
          absl::Hex(static_cast<uint8_t>(text[0]), absl::kZeroPad2));
      text.remove_prefix(1);
      continue;
    }
    if (IsHidden(next.code)) {
      absl::StrAppend(&out, Escaped(next.code));
    } else {
      absl::StrAppend(&out, text.substr(0, next.bytes));
    }
    text.remove_prefix(next.bytes);
  }
  return out;
}

}  // namespace dfl
