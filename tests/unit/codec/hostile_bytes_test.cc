// What a damaged or hostile message does: an error, and nothing else.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/checksum.h"
#include "daemon/base/rng.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/encoder.h"
#include "gtest/gtest.h"
#include "tests/unit/codec/naive_codec.h"

namespace dfl::codec {
namespace {

constexpr int64_t kN = 300;
constexpr int64_t kBuffers = 3;

Message Sample(core::MessageFormat format) {
  const std::vector<float> values = NormalValues(kN, 1, 61);
  const std::vector<float> buffers = NormalValues(kBuffers, 1, 62);
  EncoderInput input;
  input.format = format;
  input.sent = 40;
  input.seed = 63;
  input.values = values;
  input.buffers = buffers;
  return EncodeWhole(input);
}

// A body that is read while it comes in is judged as one that is read at once.
void ExpectSameVerdictInPieces(const Message& message) {
  const auto header = ParseHeader(message.header);
  if (!header.ok() || !CheckHeader(*header, kN, kBuffers).ok()) return;
  BodyCheck in_pieces(*header);
  const absl::string_view body = message.body;
  for (size_t end = 0; end < body.size(); end += 37) {
    in_pieces.Advance(body.substr(0, end));
  }
  EXPECT_EQ(in_pieces.Finish(body), BodyCheck(*header).Finish(body));
}

// Opens and, when that succeeds, uses the message in every way.
absl::Status Use(const Message& message) {
  ExpectSameVerdictInPieces(message);
  auto opened = OpenWhole(message, kN, kBuffers);
  if (!opened.ok()) return opened.status();
  std::vector<float> own(kN, 0.5f);
  std::vector<float> sum(kN);
  std::vector<int32_t> counts(kN);
  core::CoordinateRange range;
  range.end = kN;
  (*opened)->AddDifference(range, own, 0.5f, absl::MakeSpan(sum),
                           absl::MakeSpan(counts));
  for (const float v : sum) EXPECT_TRUE(std::isfinite(v));
  (*opened)->CopyDense(absl::MakeSpan(own)).IgnoreError();
  for (const float v : own) EXPECT_TRUE(std::isfinite(v));
  return absl::OkStatus();
}

// Gives `message` the checksums an honest sender would.
void Seal(Message* message) {
  const uint32_t header_crc =
      Crc32c(absl::string_view(message->header).substr(0, 32));
  std::memcpy(&message->header[32], &header_crc, 4);
  if (message->body.size() < 4) return;
  const size_t payload = message->body.size() - 4;
  const uint32_t crc = ExtendCrc32c(
      header_crc, absl::string_view(message->body).substr(0, payload));
  std::memcpy(&message->body[payload], &crc, 4);
}

TEST(HostileBytes, EverySingleBitFlipIsAnError) {
  for (const core::MessageFormat format : AllFormats()) {
    const Message good = Sample(format);
    ASSERT_TRUE(Use(good).ok()) << Use(good);
    for (size_t bit = 0; bit < 8 * good.header.size(); ++bit) {
      Message bad = good;
      bad.header[bit / 8] =
          static_cast<char>(bad.header[bit / 8] ^ 1 << bit % 8);
      EXPECT_FALSE(Use(bad).ok()) << Name(format) << " header bit " << bit;
    }
    for (size_t bit = 0; bit < 8 * good.body.size(); ++bit) {
      Message bad = good;
      bad.body[bit / 8] = static_cast<char>(bad.body[bit / 8] ^ 1 << bit % 8);
      EXPECT_FALSE(Use(bad).ok()) << Name(format) << " body bit " << bit;
    }
  }
}

TEST(HostileBytes, EveryTruncationAndExtensionIsAnError) {
  for (const core::MessageFormat format : AllFormats()) {
    const Message good = Sample(format);
    for (size_t length = 0; length < good.header.size(); ++length) {
      EXPECT_FALSE(Use({good.header.substr(0, length), good.body}).ok());
    }
    for (size_t length = 0; length < good.body.size(); ++length) {
      EXPECT_FALSE(Use({good.header, good.body.substr(0, length)}).ok())
          << Name(format) << " " << length;
    }
    EXPECT_FALSE(Use({good.header + '\0', good.body}).ok());
    EXPECT_FALSE(Use({good.header, good.body + '\0'}).ok());
  }
}

TEST(HostileBytes, BodyOfAnotherHeaderIsAnError) {
  for (const core::MessageFormat format : AllFormats()) {
    const Message good = Sample(format);
    auto header = ParseHeader(good.header);
    ASSERT_TRUE(header.ok());
    header->seed += 1;
    EXPECT_EQ(Use({SerializeHeader(*header), good.body}).code(),
              absl::StatusCode::kDataLoss);
  }
}

TEST(HostileBytes, NonFiniteValuesAndBuffersAreRefusedUnderARightChecksum) {
  for (const core::MessageFormat format : AllFormats()) {
    const Message good = Sample(format);
    const auto header = ParseHeader(good.header);
    ASSERT_TRUE(header.ok());
    const auto values_at = static_cast<size_t>(header->index_bytes());
    const auto buffers_at =
        values_at + static_cast<size_t>(header->value_bytes());
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      // The first value (or scale), and the last buffer entry.
      Message message = good;
      uint32_t bits;
      std::memcpy(&bits, &bad, 4);
      if (format.values == core::ValueType::kBf16) bits >>= 16;
      if (format.values == core::ValueType::kFp16) bits = bits >> 13 & 0xFC00;
      std::memcpy(&message.body[values_at], &bits,
                  header->format.values == core::ValueType::kFp32 ||
                          header->format.values == core::ValueType::kInt8
                      ? 4
                      : 2);
      if (format.values == core::ValueType::kFp16) {
        message.body[values_at + 1] = 0x7C;
      }
      Seal(&message);
      EXPECT_EQ(Use(message).code(), absl::StatusCode::kInvalidArgument)
          << Name(format) << Use(message);
      message = good;
      std::memcpy(&message.body[buffers_at + 4 * (kBuffers - 1)], &bad, 4);
      Seal(&message);
      EXPECT_EQ(Use(message).code(), absl::StatusCode::kInvalidArgument)
          << Name(format);
    }
  }
}

TEST(HostileBytes, HugeVectorsAreRefusedBeforeAnythingIsAllocated) {
  EncodedHeader header;
  header.n = 0xFFFFFFFF;
  header.s = header.n;
  header.payload_bytes = 4 * header.n;
  const Message message = {SerializeHeader(header), "xxxx"};
  EXPECT_EQ(Use(message).code(), absl::StatusCode::kFailedPrecondition);
}

// Random damage with right checksums gets past them to the real checks.
TEST(HostileBytes, AnyBytesGiveAMessageOrAnError) {
  constexpr uint64_t kSeed = 64;
  Rng rng(kSeed);
  int opened = 0;
  for (int round = 0; round < 30000; ++round) {
    const auto formats = AllFormats();
    Message message = Sample(formats[rng.Below(formats.size())]);
    const auto damage = [&rng](std::string* bytes, size_t from, size_t to) {
      const uint64_t edits = rng.Below(6);
      for (uint64_t e = 0; e < edits && from < to; ++e) {
        (*bytes)[from + rng.Below(to - from)] = static_cast<char>(
            rng.Bernoulli(0.3) ? 255 * rng.Below(2) : rng.Next());
      }
    };
    if (rng.Bernoulli(0.3)) damage(&message.header, 0, 32);
    damage(&message.body, 0, message.body.size());
    if (rng.Bernoulli(0.1)) message.body.resize(rng.Below(600));
    if (rng.Bernoulli(0.9)) Seal(&message);
    opened += Use(message).ok();
    ASSERT_FALSE(::testing::Test::HasFailure())
        << "seed " << kSeed << " round " << round;
  }
  EXPECT_GT(opened, 1000);
}

}  // namespace
}  // namespace dfl::codec
