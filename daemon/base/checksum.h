// CRC-32C (Castagnoli), the checksum of every message and file of ours.
#ifndef DFL_BASE_CHECKSUM_H_
#define DFL_BASE_CHECKSUM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace dfl {

// CRC-32C of `data`. Uses the processor's instruction where it has one.
uint32_t Crc32c(absl::string_view data);

// CRC-32C of a || b, given that of a.
uint32_t ExtendCrc32c(uint32_t crc_of_a, absl::string_view b);

namespace internal {
// The portable form, for the test that both agree.
uint32_t ExtendCrc32cPortable(uint32_t crc_of_a, absl::string_view b);
}  // namespace internal

}  // namespace dfl

#endif  // DFL_BASE_CHECKSUM_H_
