// The header of an encoded vector: everything the receiver needs to know
// before it takes the body. 36 bytes, little-endian, in this order:
//
//   offset bytes field
//        0     1 codec version, 1
//        1     1 coordinates: core::Coordinates
//        2     1 values: core::ValueType
//        3     1 values as steps, coded or not: bits - 1 in the low half,
//                vectors - 1 in the high one (core::StepCodes); in mod, and
//                answers to it: M - 1; else 0
//        4     4 n, length of the vector, >= 1
//        8     4 s, coordinates sent, in [1, n]; n when dense
//       12     8 seed of the message: names random coordinates; the rounding
//                draws' seed is derived from it; 0 for steps
//       20     4 length of the buffer vector (fp32 module buffers)
//       24     8 payload bytes
//       32     4 CRC-32C of the 32 bytes before
//
// The body follows, in the same or in other frames:
//
//   coordinates  top-k only: index_code.h
//   values       value_code.h; dense only: step_code.h, coded_steps.h,
//                mod_body.h
//   buffers      4 bytes each
//   trailer      4 bytes: CRC-32C of header (its own CRC left out) and payload
//
// The payload is the first three. The trailer binds the body to its header.
#ifndef DFL_CODEC_HEADER_H_
#define DFL_CODEC_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/core/vector/message_format.h"

namespace dfl::codec {

inline constexpr uint8_t kCodecVersion = 1;
inline constexpr size_t kHeaderBytes = 36;
inline constexpr int64_t kTrailerBytes = 4;

// Whether the values are written as one piece, dense, by an encoding of their
// own (step_code.h, coded_steps.h, mod_body.h) instead of value by value.
bool IsOnePiece(core::ValueType values);

struct EncodedHeader {
  core::MessageFormat format;
  int64_t n = 0;
  int64_t s = 0;
  uint64_t seed = 0;
  int64_t buffer_length = 0;
  int64_t payload_bytes = 0;

  // The parts of the payload.
  int64_t value_bytes() const;
  int64_t index_bytes() const;  // 0 unless top-k
  int64_t body_bytes() const { return payload_bytes + kTrailerBytes; }
  // Header and body: all that the codec puts on the wire.
  int64_t total_bytes() const {
    return static_cast<int64_t>(kHeaderBytes) + body_bytes();
  }

  friend bool operator==(const EncodedHeader& a, const EncodedHeader& b) {
    return a.format == b.format && a.n == b.n && a.s == b.s &&
           a.seed == b.seed && a.buffer_length == b.buffer_length &&
           a.payload_bytes == b.payload_bytes;
  }
};

// kHeaderBytes bytes. `header` is consistent, as ParseHeader() demands.
std::string SerializeHeader(const EncodedHeader& header);

// The inverse of SerializeHeader. The result is consistent: known formats, 1 <=
// s <= n, s = n when dense, and sizes that follow from the other fields (or are
// possible, for top-k). Allocates nothing.
// Errors:
//   UNIMPLEMENTED     another codec version, or a format this one does not
//                     know: the sender is newer.
//   DATA_LOSS         the checksum is wrong or the bytes are not kHeaderBytes.
//   INVALID_ARGUMENT  inconsistent; no honest encoder makes this.
absl::StatusOr<EncodedHeader> ParseHeader(absl::string_view bytes);

// Whether a receiver whose own model has `n` parameters and `buffer_length`
// buffer entries can take the message. Call it before allocating anything for
// the message: afterwards these two numbers bound body_bytes().
// Errors: FAILED_PRECONDITION when the model is another one; names both
// lengths.
absl::Status CheckHeader(const EncodedHeader& header, int64_t n,
                         int64_t buffer_length);

// The checksum of the header, from which the trailer's checksum starts.
uint32_t ChecksumOfHeader(const EncodedHeader& header);

}  // namespace dfl::codec

#endif  // DFL_CODEC_HEADER_H_
