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

// The processor's instruction takes three cycles and could start one in each,
// so three lanes of this length, a multiple of 8, are read side by side. Three
// of them fit into the 1 KiB that the codec sums at a time.
constexpr size_t kLaneBytes = 336;

using LaneTable = std::array<std::array<uint32_t, 256>, 4>;

// What kLaneBytes zero bytes make of a state, for each of its bytes: reading is
// linear, so the state after a lane is this of the state before it, xor what
// the lane gives from 0.
constexpr LaneTable MakeLaneTable() {
  LaneTable table{};
  for (uint32_t bit = 0; bit < 32; ++bit) {
    uint32_t crc = 1u << bit;
    for (size_t i = 0; i < kLaneBytes; ++i) {
      crc = (crc >> 8) ^ kTables[0][crc & 0xFF];
    }
    for (uint32_t i = 0; i < 256; ++i) {
      if ((i >> bit % 8) & 1) table[bit / 8][i] ^= crc;
    }
  }
  return table;
}

constexpr LaneTable kLaneTable = MakeLaneTable();

uint32_t OverLane(uint32_t crc) {
  return kLaneTable[0][crc & 0xFF] ^ kLaneTable[1][(crc >> 8) & 0xFF] ^
         kLaneTable[2][(crc >> 16) & 0xFF] ^ kLaneTable[3][crc >> 24];
}

uint64_t Load64(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

#if defined(__x86_64__)
#define DFL_CRC_TARGET __attribute__((target("sse4.2")))

DFL_CRC_TARGET inline uint32_t Step8(uint32_t crc, uint64_t word) {
  return static_cast<uint32_t>(_mm_crc32_u64(crc, word));
}

DFL_CRC_TARGET inline uint32_t Step1(uint32_t crc, unsigned char byte) {
  return _mm_crc32_u8(crc, byte);
}

bool HasHardware() {
  static const bool kHas = __builtin_cpu_supports("sse4.2") != 0;
  return kHas;
}
#elif defined(__ARM_FEATURE_CRC32)
#define DFL_CRC_TARGET

inline uint32_t Step8(uint32_t crc, uint64_t word) {
  return __crc32cd(crc, word);
}

inline uint32_t Step1(uint32_t crc, unsigned char byte) {
  return __crc32cb(crc, byte);
}

bool HasHardware() { return true; }
#endif

#if defined(DFL_CRC_TARGET)
DFL_CRC_TARGET uint32_t ExtendHardware(uint32_t crc_of_a, absl::string_view b) {
  const char* p = b.data();
  size_t left = b.size();
  uint32_t crc = crc_of_a ^ 0xFFFFFFFFu;
  while (left >= 3 * kLaneBytes) {
    uint32_t second = 0;
    uint32_t third = 0;
    for (size_t i = 0; i < kLaneBytes; i += 8) {
      crc = Step8(crc, Load64(p + i));
      second = Step8(second, Load64(p + kLaneBytes + i));
      third = Step8(third, Load64(p + 2 * kLaneBytes + i));
    }
    crc = OverLane(OverLane(crc) ^ second) ^ third;
    p += 3 * kLaneBytes;
    left -= 3 * kLaneBytes;
  }
  for (; left >= 8; left -= 8, p += 8) crc = Step8(crc, Load64(p));
  for (; left > 0; --left) crc = Step1(crc, static_cast<unsigned char>(*p++));
  return crc ^ 0xFFFFFFFFu;
}
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
