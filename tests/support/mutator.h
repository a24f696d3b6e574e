// Changes bytes as a fault or an attacker may: for tests that send what is
// nearly right.
#ifndef DFL_TESTS_SUPPORT_MUTATOR_H_
#define DFL_TESTS_SUPPORT_MUTATOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "daemon/base/rng.h"

namespace dfl::testing_support {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : rng_(seed) {}

  // `bytes`, changed in one to four places. The message before may lend a part.
  std::string Mutate(std::string bytes) {
    std::string out = bytes;
    for (uint64_t i = 1 + rng_.Below(4); i > 0; --i) ChangeOnce(out);
    before_ = std::move(bytes);
    return out;
  }

 private:
  void ChangeOnce(std::string& bytes) {
    const size_t at = Below(bytes.size() + 1);
    const size_t length = Below(std::min<size_t>(bytes.size() - at, 16) + 1);
    switch (rng_.Below(7)) {
      case 0:
        if (at < bytes.size()) bytes[at] ^= static_cast<char>(1U << Below(8));
        return;
      case 1: {  // ends of ranges, and of varints
        constexpr char kEnds[] = {0, 1, 0x7f, '\x80', '\xff'};
        if (at < bytes.size()) bytes[at] = kEnds[Below(sizeof(kEnds))];
        return;
      }
      case 2:
        bytes.resize(at);
        return;
      case 3:
        bytes.erase(at, length);
        return;
      case 4:
        bytes.insert(at, bytes.substr(at, length));
        return;
      case 5:
        for (size_t i = 0; i < 8; ++i) {
          bytes.insert(at, 1, static_cast<char>(Below(256)));
        }
        return;
      default:
        bytes.insert(at, before_.substr(Below(before_.size() + 1), 16));
        return;
    }
  }
  size_t Below(size_t bound) { return static_cast<size_t>(rng_.Below(bound)); }

  Rng rng_;
  std::string before_;
};

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_SUPPORT_MUTATOR_H_
