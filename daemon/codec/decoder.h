// From bytes to a vector that an algorithm can mix with. Decoding is total: any
// bytes give a message or an error, never a crash. It is bounded: nothing is
// allocated before the sizes have been checked against the receiver's own
// model.
//
// A message passes through:
//   ParseHeader, CheckHeader (header.h)
//   Assembler   collects the body from chunks
//   BodyCheck   checks it, as it arrives or at the end
//   OpenMessage makes a DecodedMessage of a valid body
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
#include "daemon/core/vector/mod_code.h"
#include "daemon/core/vector/remote_vector.h"

namespace dfl::codec {

// Puts a body together. Chunks come in order and without gaps, and may be cut
// anywhere. An interrupted transfer continues at received(). Thread-compatible.
class Assembler {
 public:
  // `header` has passed CheckHeader(): its body's size is reserved at once.
  explicit Assembler(const EncodedHeader& header);

  // Errors, which change nothing:
  //   OUT_OF_RANGE      `offset` is not received(): ask again from there.
  //   INVALID_ARGUMENT  the body would become longer than announced.
  absl::Status Append(int64_t offset, absl::string_view bytes);

  int64_t received() const { return static_cast<int64_t>(body_.size()); }
  bool complete() const { return received() == header_.body_bytes(); }
  const EncodedHeader& header() const { return header_; }
  // The bytes received so far. Append() neither moves nor changes them, so
  // another thread may read them meanwhile.
  absl::string_view body() const { return body_; }

  // Gives the body away, complete or not. The Assembler is empty afterwards.
  std::string Take() { return std::move(body_); }

 private:
  EncodedHeader header_;
  std::string body_;
};

// Checks a body. The check may begin while the body still arrives: little is
// left to do after the last byte, and new bytes are still in the cache.
// Thread-compatible.
class BodyCheck {
 public:
  // `header` has passed ParseHeader() and CheckHeader().
  explicit BodyCheck(const EncodedHeader& header);

  // Continues to the end of `body`: the part received so far, which must not be
  // shorter than before.
  void Advance(absl::string_view body);

  // Checks the whole `body`.
  // Errors:
  //   DATA_LOSS         it is too short or long, or its checksum is wrong.
  //   INVALID_ARGUMENT  the checksum is right but a value or a scale is not
  //                     finite. No honest encoder makes this.
  absl::Status Finish(absl::string_view body);

  const EncodedHeader& header() const { return header_; }

 private:
  // Checks the values whose bytes have been summed.
  void CheckSummedValues(absl::string_view body);

  EncodedHeader header_;
  uint32_t checksum_;  // of the header and the payload's first summed_ bytes
  size_t summed_ = 0;
  int64_t checked_ = 0;  // values; whole blocks, but at the end
  bool all_finite_ = true;
};

// A checked message. It holds the body, whose values are read in place, and a
// copy of the buffers. A message that is not dense holds n/8 bytes more, one of
// steps n floats, and one in `mod` n or 2 n bytes. The last carries no
// coordinates: there is nothing to mix until it is read against an own vector.
class DecodedMessage : public core::RemoteVector {
 public:
  const EncodedHeader& header() const { return header_; }

  int64_t size() const override { return header_.n; }
  int64_t carried() const override {
    return core::IsMod(header_.format.values) ? 0 : header_.s;
  }
  // What a message in `mod` carries; null: it is none.
  std::shared_ptr<const core::ModOffer> offer() const { return offer_; }
  std::shared_ptr<const core::ModAnswer> answer() const { return answer_; }

  // See core::RemoteVector. Ranges may come in any order at the same cost: each
  // starts by counting at most 4,096 bits. Concurrent calls are safe.
  void AddDifference(core::CoordinateRange range, absl::Span<const float> own,
                     float weight, absl::Span<float> sum,
                     absl::Span<int32_t> counts) override;
  void MoveOwn(core::CoordinateRange range, float weight,
               absl::Span<float> own) override;

  // The floating-point module buffers, [header().buffer_length].
  absl::Span<const float> buffers() const { return buffers_; }

  // Copies the whole model, for a node that adopts its neighbour's. `out` has n
  // entries.
  // Errors: FAILED_PRECONDITION  the message is not dense, or in `mod`; `out`
  // is untouched.
  absl::Status CopyDense(absl::Span<float> out) const;

 private:
  friend absl::StatusOr<std::unique_ptr<DecodedMessage>> OpenMessage(
      BodyCheck check, std::string body);

  DecodedMessage(const EncodedHeader& header, std::string body,
                 std::optional<CoordinateSet> set, FlatVector buffers);
  // Decodes what is written as one piece, the first `bytes` of the body.
  absl::Status OpenPiece(size_t bytes);

  // The values of a range, a run after another.
  class Runs;

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
  std::shared_ptr<const core::ModOffer> offer_;
  std::shared_ptr<const core::ModAnswer> answer_;
  uint64_t rounding_seed_;
};

// Finishes `check` and opens the body.
// Errors: those of BodyCheck::Finish(), and INVALID_ARGUMENT when a buffer
// entry is not finite, a coordinate is out of range, or steps, an offer or an
// answer are malformed.
absl::StatusOr<std::unique_ptr<DecodedMessage>> OpenMessage(BodyCheck check,
                                                            std::string body);

}  // namespace dfl::codec

#endif  // DFL_CODEC_DECODER_H_
