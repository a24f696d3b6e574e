// Cuts an input of a fuzz target into parts, so that a few of its bytes choose
// what is done with the others.
#ifndef DFL_TESTS_FUZZ_PIECES_H_
#define DFL_TESTS_FUZZ_PIECES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "daemon/base/check.h"

namespace dfl::fuzz {

class Pieces {
 public:
  explicit Pieces(absl::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }

  // The next byte; 0 at the end.
  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return byte;
  }

  // The next two bytes, little-endian.
  uint16_t Number() {
    const unsigned low = Byte();
    return static_cast<uint16_t>(low | unsigned{Byte()} << 8);
  }

  // As many bytes as the next Number says; fewer at the end.
  absl::string_view Part() { return Take(Number()); }

  absl::string_view Take(size_t count) {
    const absl::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  absl::string_view Rest() { return Take(rest_.size()); }

 private:
  absl::string_view rest_;
};

// What Pieces::Part takes off: for those who make corpora.
inline std::string AsPart(absl::string_view bytes) {
  DFL_CHECK(bytes.size() <= 0xFFFF);
  std::string part;
  part.push_back(static_cast<char>(bytes.size() & 0xFF));
  part.push_back(static_cast<char>(bytes.size() >> 8));
  part.append(bytes.data(), bytes.size());
  return part;
}

}  // namespace dfl::fuzz

#endif  // DFL_TESTS_FUZZ_PIECES_H_
