// Bytes to a vector that an algorithm can mix with. Total: any bytes give a
// message or an error, never a crash. Bounded: nothing is allocated before the
// sizes have been checked against the receiver's own model.
//
// The way of a message:
//   ParseHeader, CheckHeader (header.h)
//   Assembler   collects the body from chunks
//   BodyCheck   reads it, as it comes or at the end
//   OpenMessage gives a DecodedMessage of a body that is well
#ifndef DFL_CODEC_DECODER_H_
#define DFL_CODEC_DECODER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/codec/coordinate_set.h"
#include "daemon/codec/header.h"
#include "daemon/core/vector/remote_vector.h"

namespace dfl::codec {

// Puts a body together. Chunks come in order and without gaps; where they are
// cut makes no difference. A transfer that was interrupted goes on at
// received(). Thread-compatible.
class Assembler {
 public:
  // `header` has passed CheckHeader(): its body's size is reserved at once.
  explicit Assembler(const EncodedHeader& header);

  // Errors, which leave everything as it was:
  //   OUT_OF_RANGE      `offset` is not received(): ask again from there.
  //   INVALID_ARGUMENT  the body would get longer than announced.
  absl::Status Append(int64_t offset, absl::string_view bytes);

  int64_t received() const { return static_cast<int64_t>(body_.size()); }
  bool complete() const { return received() == header_.body_bytes(); }
  const EncodedHeader& header() const { return header_; }
  // What is here. Append() neither moves nor changes these bytes, so they may
  // be read on another thread meanwhile.
  absl::string_view body() const { return body_; }

  // The body, complete or not; the Assembler is empty then.
  std::string Take() { return std::move(body_); }

 private:
  EncodedHeader header_;
  std::string body_;
};

// The checks of a body, which may begin while it still comes in: little is left
// to do after its last byte, and what has just come is still in the cache.
// Thread-compatible.
class BodyCheck {
 public:
  // `header` has passed ParseHeader() and CheckHeader().
  explicit BodyCheck(const EncodedHeader& header);

  // Goes on to the end of `body`: what is here of it, not less than before.
  void Advance(absl::string_view body);

  // Errors, of the whole `body`:
  //   DATA_LOSS         it is too short or long, or its checksum is wrong.
  //   INVALID_ARGUMENT  the checksum is right but a value or a scale is not
  //                     finite. Not made by an honest encoder.
  absl::Status Finish(absl::string_view body);

  const EncodedHeader& header() const { return header_; }

 private:
  EncodedHeader header_;
  uint32_t checksum_;  // of the header and the payload's first summed_ bytes
  size_t summed_ = 0;
  int64_t checked_ = 0;  // values; whole blocks, but at the end
  bool all_finite_ = true;
};

// A checked message. Holds the body (values are read in place), n/8 bytes
// when it is not dense, and a copy of the buffers; of steps n floats.
class DecodedMessage : public core::RemoteVector {
 public:
  const EncodedHeader& header() const { return header_; }

  int64_t size() const override { return header_.n; }
  int64_t carried() const override { return header_.s; }

  // See core::RemoteVector. Any order of ranges costs the same: a range starts
  // by counting at most 4,096 bits. Thread-safe against itself.
  void AddDifference(core::CoordinateRange range, absl::Span<const float> own,
                     float weight, absl::Span<float> sum,
                     absl::Span<int32_t> counts) override;

  // The floating-point module buffers, [header().buffer_length].
  absl::Span<const float> buffers() const { return buffers_; }

  // The whole model, for a node that takes its neighbour's over. `out` has n
  // entries.
  // Errors: FAILED_PRECONDITION  the message is not dense; `out` is untouched.
  absl::Status CopyDense(absl::Span<float> out) const;

 private:
  friend absl::StatusOr<std::unique_ptr<DecodedMessage>> OpenMessage(
      BodyCheck check, std::string body);

  DecodedMessage(const EncodedHeader& header, std::string body,
                 std::optional<CoordinateSet> set, FlatVector buffers,
                 FlatVector steps);

  // Steps were decoded to fp32.
  core::ValueType type() const {
    return steps_.empty() ? header_.format.values : core::ValueType::kFp32;
  }
  const char* values() const {
    return steps_.empty() ? body_.data() + header_.index_bytes()
                          : reinterpret_cast<const char*>(steps_.data());
  }

  EncodedHeader header_;
  std::string body_;
  std::optional<CoordinateSet> set_;  // empty when dense
  FlatVector buffers_;
  FlatVector steps_;  // decoded, or empty
  uint64_t rounding_seed_;
};

// Finishes `check` and opens the body.
// Errors: those of BodyCheck::Finish(), and INVALID_ARGUMENT when a buffer entry
// is not finite, a coordinate is out of range or steps are malformed.
absl::StatusOr<std::unique_ptr<DecodedMessage>> OpenMessage(BodyCheck check,
                                                            std::string body);

}  // namespace dfl::codec

#endif  // DFL_CODEC_DECODER_H_
