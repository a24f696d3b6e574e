// Right checksums for made-up bytes, so that they get past them to what is
// checked behind.
#ifndef DFL_TESTS_FUZZ_SEAL_H_
#define DFL_TESTS_FUZZ_SEAL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "daemon/base/checksum.h"
#include "daemon/core/algorithm/algorithm_state.h"

namespace dfl::fuzz {

// Puts `number` over the bytes from `at` on, little-endian.
template <typename T>
void Put(T number, size_t at, std::string* bytes) {
  std::memcpy(&(*bytes)[at], &number, sizeof(number));
}

// The last four bytes become the CRC-32C of those before. Shorter: unchanged.
inline void SealEnd(std::string* bytes) {
  if (bytes->size() < sizeof(uint32_t)) return;
  const size_t checked = bytes->size() - sizeof(uint32_t);
  Put(Crc32c(absl::string_view(*bytes).substr(0, checked)), checked, bytes);
}

// The state of an algorithm (daemon/core/algorithm/algorithm_state.h): magic,
// version, length and checksum. One that is too short stays as it is.
inline void SealState(std::string* bytes) {
  constexpr size_t kVersionAt = 4;
  constexpr size_t kLengthAt = 8;
  constexpr size_t kLeastBytes = 20;
  if (bytes->size() < kLeastBytes) return;
  bytes->replace(0, kVersionAt, "DFLA");
  Put(core::kAlgorithmStateVersion, kVersionAt, bytes);
  Put(uint64_t{bytes->size()}, kLengthAt, bytes);
  SealEnd(bytes);
}

// Header and body of a message of the codec (daemon/codec/header.h), each with
// its checksum. The header has kHeaderBytes.
inline void SealMessage(std::string* header, std::string* body) {
  SealEnd(header);
  if (body->size() < sizeof(uint32_t)) return;
  const size_t payload = body->size() - sizeof(uint32_t);
  const absl::string_view checked =
      absl::string_view(*header).substr(0, header->size() - sizeof(uint32_t));
  Put(ExtendCrc32c(Crc32c(checked),
                   absl::string_view(*body).substr(0, payload)),
      payload, body);
}

}  // namespace dfl::fuzz

#endif  // DFL_TESTS_FUZZ_SEAL_H_
