#include "tests/unit/codec/naive_codec.h"

#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "daemon/base/check.h"
#include "daemon/base/distributions.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"

namespace dfl::codec {

std::vector<uint32_t> NaiveRandomCoordinates(int64_t n, int64_t s,
                                             uint64_t seed) {
  const bool complement = 2 * s > n;
  const auto wanted = static_cast<size_t>(complement ? n - s : s);
  std::set<uint32_t> drawn;
  Rng rng(seed);
  while (drawn.size() < wanted) {
    const uint64_t word = rng.Next();
    for (const uint64_t x : {word & 0xFFFFFFFF, word >> 32}) {
      const uint64_t p = x * static_cast<uint64_t>(n);
      if (p % 0x100000000 < 0x100000000 % static_cast<uint64_t>(n)) continue;
      if (drawn.size() < wanted) drawn.insert(static_cast<uint32_t>(p >> 32));
    }
  }
  std::vector<uint32_t> coordinates;
  for (uint32_t l = 0; l < n; ++l) {
    if ((drawn.count(l) == 1) != complement) coordinates.push_back(l);
  }
  return coordinates;
}

uint64_t NaiveMessage::Number(size_t offset, size_t bytes) const {
  uint64_t number = 0;
  for (size_t i = bytes; i > 0; --i) {
    number = number * 256 + static_cast<uint8_t>(body_.at(offset + i - 1));
  }
  return number;
}

NaiveMessage::NaiveMessage(const std::string& header_bytes,
                           const std::string& body) {
  body_ = header_bytes;
  type_ = static_cast<core::ValueType>(Number(2, 1));
  const auto coordinates = static_cast<core::Coordinates>(Number(1, 1));
  const uint64_t n = Number(4, 4);
  const uint64_t s = Number(8, 4);
  const uint64_t seed = Number(12, 8);
  const uint64_t buffer_length = Number(20, 4);
  const uint64_t payload = Number(24, 8);
  rounding_seed_ = DeriveSeed(seed, "rounding");
  body_ = body;
  DFL_CHECK(body_.size() == payload + 4);
  size_t value_bytes = 2 * s;
  if (type_ == core::ValueType::kFp32) value_bytes = 4 * s;
  if (type_ == core::ValueType::kInt8) value_bytes = s + (s + 255) / 256 * 4;
  values_at_ = payload - 4 * buffer_length - value_bytes;
  for (uint64_t l = 0; l < buffer_length; ++l) {
    const auto bits =
        static_cast<uint32_t>(Number(values_at_ + value_bytes + 4 * l, 4));
    float value;
    std::memcpy(&value, &bits, 4);
    buffers_.push_back(value);
  }
  switch (coordinates) {
    case core::Coordinates::kDense:
      for (uint32_t l = 0; l < n; ++l) coordinates_.push_back(l);
      break;
    case core::Coordinates::kRandom:
      coordinates_ = NaiveRandomCoordinates(static_cast<int64_t>(n),
                                            static_cast<int64_t>(s), seed);
      break;
    case core::Coordinates::kTopK: {
      uint64_t position = 0;
      const auto bit = [&] {
        const uint64_t value = Number(position / 8, 1) >> position % 8 & 1;
        ++position;
        return value;
      };
      uint64_t k = 0;
      while (s << (k + 1) <= n - s) ++k;
      uint64_t next = 0;
      while (coordinates_.size() < s) {
        uint64_t gap = 0;
        while (bit() == 0) gap += uint64_t{1} << k;
        for (uint64_t i = 0; i < k; ++i) gap += bit() << i;
        coordinates_.push_back(static_cast<uint32_t>(next + gap));
        next += gap + 1;
      }
      break;
    }
  }
}

float NaiveMessage::Scale(size_t q) const {
  const auto bits =
      static_cast<uint32_t>(Number(values_at_ + q / 256 * 260, 4));
  float scale;
  std::memcpy(&scale, &bits, 4);
  return scale;
}

double NaiveMessage::Value(size_t q) const {
  switch (type_) {
    case core::ValueType::kFp32: {
      const auto bits = static_cast<uint32_t>(Number(values_at_ + 4 * q, 4));
      float value;
      std::memcpy(&value, &bits, 4);
      return value;
    }
    case core::ValueType::kBf16: {
      const auto bits =
          static_cast<uint32_t>(Number(values_at_ + 2 * q, 2) << 16);
      float value;
      std::memcpy(&value, &bits, 4);
      return value;
    }
    case core::ValueType::kFp16: {
      const auto bits = static_cast<int>(Number(values_at_ + 2 * q, 2));
      const int exponent = bits >> 10 & 31;
      const int mantissa = bits & 1023;
      const double magnitude = exponent == 0
                                   ? std::ldexp(mantissa, -24)
                                   : std::ldexp(1024 + mantissa, exponent - 25);
      return bits >> 15 ? -magnitude : magnitude;
    }
    case core::ValueType::kInt8: {
      const size_t at = values_at_ + q / 256 * 260 + 4 + q % 256;
      return static_cast<double>(static_cast<int8_t>(Number(at, 1))) *
             static_cast<double>(Scale(q));
    }
    case core::ValueType::kMod:
    case core::ValueType::kModAnswer:
    case core::ValueType::kCodedSteps:
    case core::ValueType::kSteps:
      break;  // step_code_test.cc
  }
  return 0;
}

double NaiveMessage::Rounded(size_t q, float own) const {
  const uint64_t word =
      Mix64(rounding_seed_ + static_cast<uint64_t>(q) * 0x9E3779B97F4A7C15ULL);
  const auto draw = static_cast<double>(word >> 32);  // of 2^32
  if (type_ == core::ValueType::kFp32) return own;
  if (type_ == core::ValueType::kInt8) {
    const auto scale = static_cast<double>(Scale(q));
    if (scale == 0) return own;
    const double steps = own * (1 / scale);
    if (std::fabs(steps) >= std::ldexp(1, 22)) return own;
    return std::floor(steps + std::ldexp(draw, -32)) * scale;
  }
  const bool fp16 = type_ == core::ValueType::kFp16;
  const int random_bits = fp16 ? 13 : 16;
  int exponent = 0;
  const double magnitude = std::fabs(static_cast<double>(own));
  std::frexp(magnitude, &exponent);  // magnitude in [2^(e-1), 2^e)
  const bool fixed_grid = magnitude < std::ldexp(1, fp16 ? -14 : -126);
  const int step_exponent =
      fixed_grid ? (fp16 ? -24 : -133) : exponent - (fp16 ? 11 : 8);
  const double steps = std::ldexp(magnitude, -step_exponent);
  const double u =
      fp16 && fixed_grid
          ? std::ldexp(draw, -32)
          : std::ldexp(std::floor(std::ldexp(draw, random_bits - 32)),
                       -random_bits);
  double rounded = std::ldexp(std::floor(steps + u), step_exponent);
  if (rounded >= std::ldexp(1, 128)) {
    rounded = std::ldexp(std::ldexp(1, fp16 ? 11 : 8) - 1, fp16 ? 117 : 120);
  }
  return own < 0 ? -rounded : rounded;
}

double NaiveMessage::Difference(size_t q, float own) const {
  const double value = Value(q);
  const double rounded = Rounded(q, own);
  if (type_ == core::ValueType::kFp16) {
    if (value == 65504 && rounded >= 65504) return 0;
    if (value == -65504 && rounded <= -65504) return 0;
  }
  return value - rounded;
}

std::vector<core::MessageFormat> AllFormats() {
  std::vector<core::MessageFormat> formats;
  for (const auto coordinates :
       {core::Coordinates::kDense, core::Coordinates::kRandom,
        core::Coordinates::kTopK}) {
    for (const auto values : {core::ValueType::kFp32, core::ValueType::kFp16,
                              core::ValueType::kBf16, core::ValueType::kInt8}) {
      core::MessageFormat format;
      format.coordinates = coordinates;
      format.values = values;
      formats.push_back(format);
    }
  }
  return formats;
}

std::string Name(core::MessageFormat format) {
  return ToString(format.coordinates) + " " + ToString(format.values);
}

Message EncodeWhole(const EncoderInput& input) {
  auto encoder = Encoder::Create(input);
  DFL_CHECK(encoder.ok());
  Message message;
  message.header = (*encoder)->header_bytes();
  message.body = (*encoder)->Next(int64_t{1} << 40);
  DFL_CHECK((*encoder)->done());
  return message;
}

absl::StatusOr<std::unique_ptr<DecodedMessage>> OpenWhole(
    const Message& message, int64_t n, int64_t buffer_length) {
  DFL_ASSIGN_OR_RETURN(const EncodedHeader header, ParseHeader(message.header));
  DFL_RETURN_IF_ERROR(CheckHeader(header, n, buffer_length));
  Assembler assembler(header);
  DFL_RETURN_IF_ERROR(assembler.Append(0, message.body));
  return OpenMessage(BodyCheck(header), assembler.Take());
}

std::vector<float> NormalValues(int64_t n, float deviation, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) {
    v = deviation * static_cast<float>(Normal(rng));
  }
  return values;
}

std::string ToHex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex.push_back(kDigits[static_cast<uint8_t>(c) >> 4]);
    hex.push_back(kDigits[static_cast<uint8_t>(c) & 15]);
  }
  return hex;
}

}  // namespace dfl::codec
