#include "daemon/codec/header.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "daemon/base/checksum.h"
#include "daemon/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::codec {
namespace {

using ::testing::HasSubstr;

EncodedHeader Sample() {
  EncodedHeader header;
  header.format.coordinates = core::Coordinates::kRandom;
  header.format.values = core::ValueType::kInt8;
  header.n = 1000;
  header.s = 300;
  header.seed = 0x0123456789ABCDEF;
  header.buffer_length = 7;
  header.payload_bytes = 300 + 2 * 4 + 7 * 4;
  return header;
}

// `header` with `bytes` of `value` at `offset`, and the right checksum.
std::string With(const EncodedHeader& header, size_t offset, size_t bytes,
                 uint64_t value) {
  std::string raw = SerializeHeader(header);
  std::memcpy(&raw[offset], &value, bytes);
  const uint32_t crc = Crc32c(absl::string_view(raw).substr(0, 32));
  std::memcpy(&raw[32], &crc, 4);
  return raw;
}

absl::Status StatusOf(const std::string& bytes) {
  return ParseHeader(bytes).status();
}

TEST(Header, GivesBackWhatWasWritten) {
  const auto parsed = ParseHeader(SerializeHeader(Sample()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(*parsed == Sample());
  EXPECT_EQ(parsed->value_bytes(), 308);
  EXPECT_EQ(parsed->index_bytes(), 0);
  EXPECT_EQ(parsed->total_bytes(), 36 + 336 + 4);
}

TEST(Header, RefusesEveryBitFlipAndEveryOtherLength) {
  const std::string bytes = SerializeHeader(Sample());
  ASSERT_EQ(bytes.size(), kHeaderBytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(StatusOf(damaged).ok()) << "bit " << bit;
  }
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(StatusOf(bytes.substr(0, length)).code(),
              absl::StatusCode::kDataLoss);
  }
  EXPECT_FALSE(StatusOf(bytes + '\0').ok());
}

TEST(Header, RefusesUnknownVersionsAndFormatsAsNotImplemented) {
  for (const auto& [offset, value] : {std::pair<size_t, uint64_t>{0, 0},
                                      {0, 2},
                                      {0, 255},
                                      {1, 0},
                                      {1, 4},
                                      {2, 0},
                                      {2, 9},
                                      {3, 1}}) {
    const absl::Status status = StatusOf(With(Sample(), offset, 1, value));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented)
        << offset << " " << value << " " << status;
  }
  EXPECT_THAT(std::string(StatusOf(With(Sample(), 0, 1, 2)).message()),
              HasSubstr("version 2"));
}

TEST(Header, RefusesHostileSizes) {
  const auto refused = [](const std::string& bytes) {
    return StatusOf(bytes).code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(With(Sample(), 4, 4, 0)));       // n = 0
  EXPECT_TRUE(refused(With(Sample(), 8, 4, 0)));       // s = 0
  EXPECT_TRUE(refused(With(Sample(), 8, 4, 1001)));    // s > n
  EXPECT_TRUE(refused(With(Sample(), 8, 4, ~0ull)));   // s huge
  EXPECT_TRUE(refused(With(Sample(), 20, 4, ~0ull)));  // buffers huge
  for (const uint64_t payload :
       {uint64_t{0}, uint64_t{335}, uint64_t{337}, uint64_t{1} << 32,
        uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 3}) {
    EXPECT_TRUE(refused(With(Sample(), 24, 8, payload))) << payload;
  }
  EXPECT_TRUE(refused(With(Sample(), 1, 1, 1)));  // dense, s < n
  EncodedHeader topk = Sample();
  topk.format.coordinates = core::Coordinates::kTopK;
  topk.payload_bytes += 100;
  EXPECT_TRUE(ParseHeader(SerializeHeader(topk)).ok());
  topk.payload_bytes += 1000;
  EXPECT_TRUE(refused(SerializeHeader(topk)));
  topk.payload_bytes -= 1080;
  EXPECT_TRUE(refused(SerializeHeader(topk)));
}

TEST(Header, OfAnotherModelIsRefusedWithBothLengths) {
  EXPECT_TRUE(CheckHeader(Sample(), 1000, 7).ok());
  const absl::Status status = CheckHeader(Sample(), 999, 7);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1000"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("999"));
  EXPECT_FALSE(CheckHeader(Sample(), 1000, 0).ok());
}

TEST(Header, LargestSizesDoNotOverflow) {
  EncodedHeader header;
  header.n = 0xFFFFFFFF;
  header.s = header.n;
  header.buffer_length = 0xFFFFFFFF;
  header.payload_bytes = int64_t{8} * 0xFFFFFFFF;
  const auto parsed = ParseHeader(SerializeHeader(header));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_FALSE(CheckHeader(*parsed, 1000, 7).ok());
}

TEST(Header, AnyBytesGiveAHeaderOrAnError) {
  Rng rng(11);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(kHeaderBytes, '\0');
    for (char& c : bytes) c = static_cast<char>(rng.Next());
    bytes[0] = 1;
    bytes[1] = static_cast<char>(1 + rng.Below(3));
    bytes[2] = static_cast<char>(1 + rng.Below(5));
    if (bytes[2] != 5) bytes[3] = 0;
    const uint32_t crc = Crc32c(absl::string_view(bytes).substr(0, 32));
    std::memcpy(&bytes[32], &crc, 4);
    const auto header = ParseHeader(bytes);
    if (!header.ok()) continue;
    EXPECT_EQ(SerializeHeader(*header), bytes);
  }
}

}  // namespace
}  // namespace dfl::codec
