#include "daemon/codec/header.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/checksum.h"
#include "daemon/base/status_macros.h"
#include "daemon/codec/coded_steps.h"
#include "daemon/codec/index_code.h"
#include "daemon/codec/mod_body.h"
#include "daemon/codec/step_code.h"
#include "daemon/codec/value_code.h"

namespace dfl::codec {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the codec loads and stores little-endian numbers in place");

constexpr size_t kChecked = kHeaderBytes - 4;

template <typename T>
void Append(T value, std::string* bytes) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes->append(raw, sizeof(T));
}

template <typename T>
T Field(absl::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

bool IsSteps(const core::MessageFormat& format) {
  return core::IsSteps(format.values);
}

bool IsMod(const core::MessageFormat& format) {
  return core::IsMod(format.values);
}

// The header's byte of bits and vectors, or of M.
uint8_t Layout(const core::MessageFormat& format) {
  if (IsMod(format)) return static_cast<uint8_t>(format.modulus - 1);
  if (!IsSteps(format)) return 0;
  return static_cast<uint8_t>((format.bits - 1) | (format.vectors - 1) << 4);
}

// A message of steps is dense, its vectors have equal lengths, and nothing is
// drawn.
absl::Status CheckSteps(const EncodedHeader& header) {
  if (header.format.coordinates == core::Coordinates::kDense &&
      header.n % header.format.vectors == 0 && header.seed == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the message announces steps of ", header.n, " values in ",
                   header.format.vectors, " vectors as ",
                   ToString(header.format.coordinates), ", seed ", header.seed,
                   "; allowed: equal vectors, dense, seed 0"));
}

absl::Status CheckMod(const EncodedHeader& header) {
  if (header.format.coordinates == core::Coordinates::kDense &&
      header.format.modulus >= core::kLeastModulus) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the message announces values mod ", header.format.modulus, " as ",
      ToString(header.format.coordinates), "; allowed: mod ",
      core::kLeastModulus, " to ", core::kMostModulus, ", dense"));
}

// The bounds of the payload without its buffers.
struct Bounds {
  int64_t least = 0;
  int64_t most = 0;
};

Bounds BoundsOf(const EncodedHeader& header) {
  const core::MessageFormat& format = header.format;
  switch (format.values) {
    case core::ValueType::kMod:
      return {LeastOfferBytes(header.n),
              MostOfferBytes(format.modulus, header.n)};
    case core::ValueType::kModAnswer:
      return {LeastAnswerBytes(header.n), MostAnswerBytes(header.n)};
    case core::ValueType::kCodedSteps:
      return {LeastCodedStepBytes(format.vectors, header.n),
              MostCodedStepBytes(format.vectors, header.n)};
    default:
      break;
  }
  Bounds bounds = {header.value_bytes(), header.value_bytes()};
  if (format.coordinates == core::Coordinates::kTopK) {
    bounds.least += MinIndexBytes(header.n, header.s);
    bounds.most += MaxIndexBytes(header.n, header.s);
  }
  return bounds;
}

std::string CheckedPart(const EncodedHeader& header) {
  std::string bytes;
  bytes.reserve(kHeaderBytes);
  Append(kCodecVersion, &bytes);
  Append(static_cast<uint8_t>(header.format.coordinates), &bytes);
  Append(static_cast<uint8_t>(header.format.values), &bytes);
  Append(Layout(header.format), &bytes);
  Append(static_cast<uint32_t>(header.n), &bytes);
  Append(static_cast<uint32_t>(header.s), &bytes);
  Append(header.seed, &bytes);
  Append(static_cast<uint32_t>(header.buffer_length), &bytes);
  Append(static_cast<uint64_t>(header.payload_bytes), &bytes);
  DFL_CHECK(bytes.size() == kChecked);
  return bytes;
}

absl::Status CheckPayloadBytes(const EncodedHeader& header,
                               uint64_t payload_bytes) {
  const Bounds bounds = BoundsOf(header);
  const auto least =
      static_cast<uint64_t>(bounds.least + 4 * header.buffer_length);
  const auto most =
      static_cast<uint64_t>(bounds.most + 4 * header.buffer_length);
  if (payload_bytes < least || payload_bytes > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the message announces ", payload_bytes, " payload bytes; ", header.s,
        " of ", header.n, " values as ", ToString(header.format.coordinates),
        " ", ToString(header.format.values), " with ", header.buffer_length,
        " buffer entries take ", least,
        least == most ? "" : absl::StrCat(" to ", most)));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsOnePiece(core::ValueType values) {
  return core::IsSteps(values) || core::IsMod(values);
}

int64_t EncodedHeader::value_bytes() const {
  if (format.values == core::ValueType::kSteps) {
    return StepCodeBytes(format.bits, format.vectors, s);
  }
  if (IsOnePiece(format.values)) return payload_bytes - 4 * buffer_length;
  return ValueBytes(format.values, s);
}

int64_t EncodedHeader::index_bytes() const {
  return payload_bytes - value_bytes() - 4 * buffer_length;
}

std::string SerializeHeader(const EncodedHeader& header) {
  std::string bytes = CheckedPart(header);
  Append(Crc32c(bytes), &bytes);
  return bytes;
}

uint32_t ChecksumOfHeader(const EncodedHeader& header) {
  return Crc32c(CheckedPart(header));
}

absl::StatusOr<EncodedHeader> ParseHeader(absl::string_view bytes) {
  if (!bytes.empty() && static_cast<uint8_t>(bytes[0]) != kCodecVersion) {
    return absl::UnimplementedError(absl::StrCat(
        "the message has codec version ", static_cast<uint8_t>(bytes[0]),
        "; this build reads version ", kCodecVersion,
        ": run the same release on both nodes"));
  }
  if (bytes.size() != kHeaderBytes) {
    return absl::DataLossError(absl::StrCat("a message header has ",
                                            kHeaderBytes, " bytes, this one ",
                                            bytes.size()));
  }
  if (Crc32c(bytes.substr(0, kChecked)) != Field<uint32_t>(bytes, kChecked)) {
    return absl::DataLossError(
        "the checksum of the message header is wrong: it was damaged on the "
        "way");
  }
  const auto coordinates = Field<uint8_t>(bytes, 1);
  const auto values = Field<uint8_t>(bytes, 2);
  if (coordinates < static_cast<int>(core::Coordinates::kDense) ||
      coordinates > static_cast<int>(core::Coordinates::kTopK) ||
      values < static_cast<int>(core::ValueType::kFp32) ||
      values > static_cast<int>(core::ValueType::kCodedSteps) ||
      (!IsOnePiece(static_cast<core::ValueType>(values)) && bytes[3] != 0)) {
    return absl::UnimplementedError(absl::StrCat(
        "the message has coordinate format ", coordinates, ", value format ",
        values, ", flags ", static_cast<uint8_t>(bytes[3]),
        "; this build reads coordinate formats 1 to 3, value formats 1 to 8, "
        "flags 0 below 5: run the same release on both nodes"));
  }
  EncodedHeader header;
  header.format.coordinates = static_cast<core::Coordinates>(coordinates);
  header.format.values = static_cast<core::ValueType>(values);
  if (IsSteps(header.format)) {
    const auto layout = static_cast<uint8_t>(bytes[3]);
    header.format.bits = (layout & 15) + 1;
    header.format.vectors = (layout >> 4) + 1;
  }
  if (IsMod(header.format)) {
    header.format.modulus = static_cast<uint8_t>(bytes[3]) + 1;
  }
  header.n = Field<uint32_t>(bytes, 4);
  header.s = Field<uint32_t>(bytes, 8);
  header.seed = Field<uint64_t>(bytes, 12);
  header.buffer_length = Field<uint32_t>(bytes, 20);
  const auto payload_bytes = Field<uint64_t>(bytes, 24);
  const bool dense = header.format.coordinates == core::Coordinates::kDense;
  if (header.s < 1 || header.s > header.n || (dense && header.s != header.n)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the message announces ", header.s, " of ", header.n, " values as ",
        ToString(header.format.coordinates),
        "; allowed: ", dense ? "all, and at least 1" : "1 to all"));
  }
  if (IsSteps(header.format)) DFL_RETURN_IF_ERROR(CheckSteps(header));
  if (IsMod(header.format)) DFL_RETURN_IF_ERROR(CheckMod(header));
  if (absl::Status status = CheckPayloadBytes(header, payload_bytes);
      !status.ok()) {
    return status;
  }
  header.payload_bytes = static_cast<int64_t>(payload_bytes);
  return header;
}

absl::Status CheckHeader(const EncodedHeader& header, int64_t n,
                         int64_t buffer_length) {
  if (header.n == n && header.buffer_length == buffer_length) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the message is of a model with ", header.n, " parameters and ",
      header.buffer_length, " buffer entries; this node's has ", n, " and ",
      buffer_length, ": both nodes must run the same model"));
}

}  // namespace dfl::codec
