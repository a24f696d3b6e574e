// A second, deliberately naive implementation of the receiving side, written
// from the comments of daemon/codec: one value at a time, in double, with sets
// and single bits. Also the small helpers that the codec's tests share.
#ifndef DFL_TESTS_UNIT_CODEC_NAIVE_CODEC_H_
#define DFL_TESTS_UNIT_CODEC_NAIVE_CODEC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/codec/decoder.h"
#include "daemon/codec/encoder.h"
#include "daemon/core/vector/message_format.h"

namespace dfl::codec {

// The set that CoordinateSet::Random's comment describes.
std::vector<uint32_t> NaiveRandomCoordinates(int64_t n, int64_t s,
                                             uint64_t seed);

class NaiveMessage {
 public:
  // An honest message.
  NaiveMessage(const std::string& header_bytes, const std::string& body);

  const std::vector<uint32_t>& coordinates() const { return coordinates_; }
  const std::vector<float>& buffers() const { return buffers_; }
  // The q-th sent value as decoded.
  double Value(size_t q) const;
  // dec(code) - dec(code of own) for the q-th sent value.
  double Difference(size_t q, float own) const;

 private:
  uint64_t Number(size_t offset, size_t bytes) const;
  // `own` on the message's grid under the q-th draw.
  double Rounded(size_t q, float own) const;
  float Scale(size_t q) const;

  std::string body_;
  core::ValueType type_ = core::ValueType::kFp32;
  size_t values_at_ = 0;
  uint64_t rounding_seed_ = 0;
  std::vector<uint32_t> coordinates_;
  std::vector<float> buffers_;
};

// All twelve.
std::vector<core::MessageFormat> AllFormats();
std::string Name(core::MessageFormat format);

struct Message {
  std::string header;
  std::string body;
};

// Encodes in one chunk. Dies when Create fails.
Message EncodeWhole(const EncoderInput& input);

// Parses, checks, assembles and opens.
absl::StatusOr<std::unique_ptr<DecodedMessage>> OpenWhole(
    const Message& message, int64_t n, int64_t buffer_length);

// n values, normal with the given standard deviation.
std::vector<float> NormalValues(int64_t n, float deviation, uint64_t seed);

std::string ToHex(const std::string& bytes);

}  // namespace dfl::codec

#endif  // DFL_TESTS_UNIT_CODEC_NAIVE_CODEC_H_
