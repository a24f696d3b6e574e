#include "daemon/base/utf8.h"

namespace dfl {

Utf8Character FirstCharacter(absl::string_view text) {
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

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t bytes = FirstCharacter(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

absl::string_view StartOf(absl::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  constexpr size_t kMostBytes = 4;  // of a character
  for (size_t back = 1; back < kMostBytes && back <= bytes; ++back) {
    const size_t begin = bytes - back;
    if (FirstCharacter(text.substr(begin)).bytes > back) {
      return text.substr(0, begin);
    }
  }
  return text.substr(0, bytes);
}

}  // namespace dfl
