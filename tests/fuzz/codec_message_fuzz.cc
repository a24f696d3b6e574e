// A model or mass on the wire: the codec's header, 36 bytes, and the body. They
// are tried as they are, and once more with a body of the announced length and
// with right checksums.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/encoder.h"
#include "daemon/codec/header.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/pieces.h"
#include "tests/fuzz/seal.h"

namespace dfl::fuzz {
namespace {

using codec::DecodedMessage;
using codec::EncodedHeader;
using core::CoordinateRange;

// The receiver's model is as large as the message says, within reason.
constexpr int64_t kLargest = 1 << 16;

// Null: the header is refused, or of a larger model than the receiver's.
std::unique_ptr<EncodedHeader> Parse(const std::string& bytes) {
  const auto header = codec::ParseHeader(bytes);
  if (!header.ok() || header->n > kLargest ||
      header->buffer_length > kLargest) {
    return nullptr;
  }
  DFL_CHECK(codec::SerializeHeader(*header) == bytes);
  DFL_CHECK(codec::CheckHeader(*header, header->n, header->buffer_length).ok());
  // At most 4 bytes a value, 2 and a few a coordinate, and 4 a buffer entry;
  // some formats fill up to 256 values, or to vectors of one each.
  DFL_CHECK(header->body_bytes() <=
            7 * (header->n + 256) + 4 * header->buffer_length + 128);
  return std::make_unique<EncodedHeader>(*header);
}

struct Sums {
  std::vector<float> sum;
  std::vector<int32_t> counts;

  friend bool operator==(const Sums&, const Sums&) = default;
};

// In `parts` ranges, the last one first.
Sums DifferenceOf(DecodedMessage& message, int64_t parts) {
  const int64_t n = message.size();
  const std::vector<float> own(static_cast<size_t>(n), 0.5F);
  Sums sums{std::vector<float>(own.size()), std::vector<int32_t>(own.size())};
  for (int64_t part = parts; part-- > 0;) {
    CoordinateRange range;
    range.begin = n * part / parts;
    range.end = n * (part + 1) / parts;
    const auto from = static_cast<size_t>(range.begin);
    const auto length = static_cast<size_t>(range.size());
    message.AddDifference(range, absl::MakeSpan(own).subspan(from, length),
                          0.5F, absl::MakeSpan(sums.sum).subspan(from, length),
                          absl::MakeSpan(sums.counts).subspan(from, length));
  }
  return sums;
}

// What was decoded exactly is encoded to the same bytes.
void CheckEncodesAgain(const DecodedMessage& message, const std::string& body) {
  const EncodedHeader& header = message.header();
  std::vector<float> values(static_cast<size_t>(header.n));
  const absl::Status copied = message.CopyDense(absl::MakeSpan(values));
  DFL_CHECK(copied.ok() ==
            (header.format.coordinates == core::Coordinates::kDense &&
             !core::IsMod(header.format.values)));
  if (!copied.ok()) return;
  for (const float value : values) DFL_CHECK(std::isfinite(value));
  if (header.format.values != core::ValueType::kFp32) return;
  codec::EncoderInput input;
  input.format = header.format;
  input.seed = header.seed;
  input.values = values;
  input.buffers = message.buffers();
  const auto encoder = codec::Encoder::Create(input);
  DFL_CHECK(encoder.ok() && (*encoder)->header() == header);
  DFL_CHECK((*encoder)->Next(header.body_bytes()) == body);
}

void CheckBody(const EncodedHeader& header, const std::string& body,
               size_t step) {
  codec::Assembler assembler(header);
  codec::BodyCheck in_pieces(header);
  for (size_t at = 0; at < body.size(); at += step) {
    const auto piece = absl::string_view(body).substr(at, step);
    if (!assembler.Append(static_cast<int64_t>(at), piece).ok()) break;
    in_pieces.Advance(assembler.body());
  }
  DFL_CHECK(assembler.received() <= header.body_bytes());
  const std::string whole = assembler.Take();
  const absl::Status status = codec::BodyCheck(header).Finish(whole);
  DFL_CHECK(in_pieces.Finish(whole) == status);
  const auto message = codec::OpenMessage(codec::BodyCheck(header), whole);
  if (!message.ok()) return;
  DFL_CHECK(status.ok());
  const int64_t carried = core::IsMod(header.format.values) ? 0 : header.s;
  DFL_CHECK((*message)->carried() == carried);
  const Sums sums = DifferenceOf(**message, 1);
  for (const float sum : sums.sum) DFL_CHECK(std::isfinite(sum));
  for (const float entry : (*message)->buffers()) {
    DFL_CHECK(std::isfinite(entry));
  }
  DFL_CHECK(std::count(sums.counts.begin(), sums.counts.end(), 1) == carried);
  DFL_CHECK(DifferenceOf(**message, 3) == sums);
  CheckEncodesAgain(**message, whole);
}

}  // namespace

DFL_FUZZ_TARGET(codec_message)(absl::string_view bytes) {
  Pieces pieces(bytes);
  const size_t step = 1 + size_t{pieces.Byte()} * 8;
  std::string header(pieces.Take(codec::kHeaderBytes));
  std::string body(pieces.Rest());
  if (const auto parsed = Parse(header)) CheckBody(*parsed, body, step);

  header.resize(codec::kHeaderBytes);
  SealEnd(&header);
  const auto parsed = Parse(header);
  if (parsed == nullptr) return;
  body.resize(static_cast<size_t>(parsed->body_bytes()));
  SealMessage(&header, &body);
  CheckBody(*parsed, body, step);
}

}  // namespace dfl::fuzz
