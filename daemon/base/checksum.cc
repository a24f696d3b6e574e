#include "daemon/base/checksum.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace dfl {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// Slicing-by-8 tables of the reflected polynomial 0x82F63B78.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0u);
    }
    tables[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (size_t t = 1; t < 8; ++t) {
      const uint32_t previous = tables[t - 1][i];
      tables[t][i] = (previous >> 8) ^ tables[0][previous & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ExtendHardware(uint32_t crc_of_a,
                                                          absl::string_view b) {
  const char* p = b.data();
  size_t left = b.size();
  uint64_t crc = crc_of_a ^ 0xFFFFFFFFu;
  while (left >= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    crc = _mm_crc32_u64(crc, word);
    p += 8;
    left -= 8;
  }
  uint32_t crc32 = static_cast<uint32_t>(crc);
  while (left > 0) {
    crc32 = _mm_crc32_u8(crc32, static_cast<unsigned char>(*p++));
    --left;
  }
  return crc32 ^ 0xFFFFFFFFu;
}

bool HasHardware() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}
#elif defined(__ARM_FEATURE_CRC32)
uint32_t ExtendHardware(uint32_t crc_of_a, absl::string_view b) {
  const char* p = b.data();
  size_t left = b.size();
  uint32_t crc = crc_of_a ^ 0xFFFFFFFFu;
  while (left >= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    crc = __crc32cd(crc, word);
    p += 8;
    left -= 8;
  }
  while (left > 0) {
    crc = __crc32cb(crc, static_cast<unsigned char>(*p++));
    --left;
  }
  return crc ^ 0xFFFFFFFFu;
}

bool HasHardware() { return true; }
#else
uint32_t ExtendHardware(uint32_t crc_of_a, absl::string_view b) {
  return internal::ExtendCrc32cPortable(crc_of_a, b);
}

bool HasHardware() { return false; }
#endif

}  // namespace

namespace internal {

uint32_t ExtendCrc32cPortable(uint32_t crc_of_a, absl::string_view b) {
  const auto* p = reinterpret_cast<const unsigned char*>(b.data());
  size_t left = b.size();
  uint32_t crc = crc_of_a ^ 0xFFFFFFFFu;
  while (left >= 8) {
    const uint32_t low = crc ^ (uint32_t{p[0]} | uint32_t{p[1]} << 8 |
                                uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24);
    crc = kTables[7][low & 0xFF] ^ kTables[6][(low >> 8) & 0xFF] ^
          kTables[5][(low >> 16) & 0xFF] ^ kTables[4][low >> 24] ^
          kTables[3][p[4]] ^ kTables[2][p[5]] ^ kTables[1][p[6]] ^
          kTables[0][p[7]];
    p += 8;
    left -= 8;
  }
  while (left > 0) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ *p++) & 0xFF];
    --left;
  }
  return crc ^ 0xFFFFFFFFu;
}

}  // namespace internal

uint32_t ExtendCrc32c(uint32_t crc_of_a, absl::string_view b) {
  return HasHardware() ? ExtendHardware(crc_of_a, b)
                       : internal::ExtendCrc32cPortable(crc_of_a, b);
}

uint32_t Crc32c(absl::string_view data) { return ExtendCrc32c(0, data); }

}  // namespace dfl
