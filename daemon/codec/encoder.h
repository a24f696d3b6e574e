// From a vector to bytes, chunk by chunk from the caller's snapshot: a dense
// model of 1 GB is never held a second time as bytes.
//
// Memory:
//   dense    nothing of order n
//   random   n/8 bytes
//   top-k    n/8 bytes and the list of coordinates (at most 2 bytes each, see
//            index_code.h); 8 bytes a coordinate more if what was sent is kept
//            for an EdgeReference
//   steps    the body: at most 2 bytes a coordinate and 4 a block
//   mod      the body: at most a byte a coordinate
#ifndef DFL_CODEC_ENCODER_H_
#define DFL_CODEC_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/codec/coordinate_set.h"
#include "daemon/codec/header.h"
#include "daemon/core/vector/message_format.h"
#include "daemon/core/vector/mod_code.h"
#include "daemon/core/vector/step_codes.h"

namespace dfl::codec {

struct EncoderInput {
  core::MessageFormat format;
  // s, in [1, n]: core::SentCoordinates(rate, n). Ignored when dense.
  int64_t sent = 0;
  // Fresh for every message; the same in both directions of an edge where
  // mixing is symmetric.
  uint64_t seed = 0;
  // [n], 1 <= n <= kMaxVectorLength.
  absl::Span<const float> values;
  // Floating-point module buffers, sent as they are; may be empty.
  absl::Span<const float> buffers;
  // Top-k only: [n], or empty for all zero. See EdgeReference.
  absl::Span<const float> reference;
  // Top-k only: whether TakeSent() will be called.
  bool keep_sent = false;
  // Steps only: the codes of `values`. Messages of steps are dense, have seed 0
  // and keep nothing. Where entropy coding makes them shorter, the message is
  // of coded steps. Read only by Create.
  const core::StepCodes* steps = nullptr;
  // kMod only, and then `values` are empty; kModAnswer only, and then `values`
  // are its difference, or empty. Their seed is `seed`. Read only by Create.
  const core::ModOffer* offer = nullptr;
  const core::ModAnswer* answer = nullptr;
};

// What a message carries, as its receiver decodes it.
struct SentValues {
  std::vector<uint32_t> coordinates;  // increasing
  std::vector<float> values;
};

// Call order: Create, then Next until done(), then status(), then TakeSent if
// wanted. Thread-compatible. The spans of the input are read until done();
// `reference` only by Create.
//
// All n values are checked, not only those that are sent, because a model with
// one that is infinite or not a number must not be mixed. Each is checked just
// before it is encoded, while it is in the cache: it is read once. A body whose
// last bytes were written has been checked as a whole.
class Encoder {
 public:
  // Errors: INVALID_ARGUMENT
  //   n or `sent` is out of range, or a span has the wrong length;
  //   a buffer entry, or a value of steps, is infinite or not a number; the
  //   first one is named.
  static absl::StatusOr<std::unique_ptr<Encoder>> Create(
      const EncoderInput& input);

  const EncodedHeader& header() const { return header_; }
  // SerializeHeader(header()), to travel ahead of the body.
  std::string header_bytes() const { return SerializeHeader(header_); }
  // Header and body.
  int64_t total_bytes() const { return header_.total_bytes(); }

  // Writes the next bytes of the body into memory of the caller's, which need
  // not be set before, and returns how many: fewer than out.size() only at the
  // body's end, or when status() becomes an error. The bytes do not depend on
  // where chunks are cut. Requires out.size() >= 1.
  size_t Next(absl::Span<char> out);
  // The same as a string of up to `max_bytes`. Requires max_bytes >= 1.
  std::string Next(int64_t max_bytes);

  // Bytes of the body handed out so far.
  int64_t position() const { return position_; }
  // Nothing more comes: the body is complete, or status() is an error.
  bool done() const {
    return position_ == header_.body_bytes() || !status_.ok();
  }
  // INVALID_ARGUMENT when a value cannot be sent: it is infinite, not a number,
  // or beyond 2^126 for int8. The first one is named. What was handed out is
  // then no message.
  const absl::Status& status() const { return status_; }

  // What was sent. Requires keep_sent and done(); gives it away.
  SentValues TakeSent();

 private:
  // What the body is made of, a piece at a time.
  enum class Section { kIndices, kValues, kBuffers, kTrailer, kEnd };

  Encoder(const EncoderInput& input, EncodedHeader header,
          std::optional<CoordinateSet> set, std::string indices);

  // Bytes of the next piece; 0 at the end.
  size_t PieceBytes() const;
  // Writes the next piece at `out`. The checksum must cover all pieces before
  // the trailer when that is written. False: status_ is an error.
  bool WritePiece(char* out);
  // Takes what was written, in order, into the checksum.
  void Sum(absl::Span<const char> written);
  bool WriteValues(char* out);
  // Checks the values from checked_ to `end`; false: status_ is an error.
  bool CheckUpTo(size_t end);
  // Goes to the next section while the current one has nothing left.
  void SkipEmptySections();

  EncoderInput input_;
  EncodedHeader header_;
  std::optional<CoordinateSet> set_;  // empty when dense
  CoordinateSet::Cursor cursor_;
  std::string indices_;  // or what is written as one piece
  uint64_t rounding_seed_;
  SentValues sent_;

  Section section_ = Section::kIndices;
  size_t section_position_ = 0;  // bytes, values, entries, or 0
  uint32_t checksum_;            // of header and payload
  size_t checked_ = 0;           // values
  absl::Status status_;
  std::string rest_;  // of a piece that a chunk's end cut
  size_t rest_position_ = 0;
  int64_t position_ = 0;
};

}  // namespace dfl::codec

#endif  // DFL_CODEC_ENCODER_H_
