#include "daemon/base/utf8.h"

#include <cstddef>
#include <cstdint>

namespace dfl {

bool IsUtf8(absl::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto first = static_cast<uint8_t>(text[i]);
    const size_t length = first < 0x80           ? 1
                          : (first >> 5) == 0x06 ? 2
                          : (first >> 4) == 0x0e ? 3
                          : (first >> 3) == 0x1e ? 4
                                                 : 0;
    if (length == 0 || length > text.size() - i) return false;
    uint32_t code = length == 1 ? first : first & (0xffu >> (length + 1));
    for (size_t j = 1; j < length; ++j) {
      const auto next = static_cast<uint8_t>(text[i + j]);
      if ((next >> 6) != 0x02) return false;
      code = code << 6 | (next & 0x3fu);
    }
    constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < kLeast[length] || surrogate || code > 0x10ffff) return false;
    i += length;
  }
  return true;
}

}  // namespace dfl
