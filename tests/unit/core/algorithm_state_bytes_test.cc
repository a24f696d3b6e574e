// States as bytes: what is torn, changed or made up is an error.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "daemon/base/checksum.h"
#include "daemon/core/algorithm/algorithm_state.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::core {
namespace {

using testing::HasSubstr;

AlgorithmState Sample() {
  AlgorithmState state;
  state.algorithm = "sgp";
  state.fields = {{"a", int64_t{-2}},
                  {"b", 0.5},
                  {"c", std::string("node-1")},
                  {"d", FlatVector{1, -2, 3}},
                  {"e", std::vector<double>{4, 5}},
                  {"f", std::vector<std::string>{"x", "", "yz"}},
                  {"g", FlatVector()}};
  return state;
}

TEST(StateBytesTest, AreTheFormatOnRecord) {
  AlgorithmState state;
  state.algorithm = "ab";
  state.fields = {{"k", int64_t{258}}};
  const std::string bytes = SerializeState(state);
  const std::string body = bytes.substr(0, bytes.size() - 4);
  EXPECT_EQ(absl::BytesToHexString(body),
            "44464c41"          // DFLA
            "01000000"          // version
            "2c00000000000000"  // 44 bytes
            "020000006162"      // ab
            "01000000"          // one field
            "010000006b00"      // k, an integer
            "0201000000000000");
  const uint32_t checksum = Crc32c(body);
  EXPECT_EQ(std::memcmp(bytes.data() + body.size(), &checksum, 4), 0);
}

TEST(StateBytesTest, AreReadAsTheyWereWritten) {
  const auto parsed = ParseState(SerializeState(Sample()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, Sample());
  EXPECT_EQ(SerializeState(*parsed), SerializeState(Sample()));
}

TEST(StateBytesTest, EveryTruncationAndEveryFlippedBitIsAnError) {
  const std::string bytes = SerializeState(Sample());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(ParseState(absl::string_view(bytes).substr(0, length)).ok())
        << length;
  }
  EXPECT_FALSE(ParseState(bytes + '\0').ok());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(ParseState(flipped).ok()) << bit;
  }
}

// `bytes` with their checksum made right.
std::string Sealed(std::string bytes) {
  bytes.resize(bytes.size() - 4);
  const uint32_t checksum = Crc32c(bytes);
  bytes.append(reinterpret_cast<const char*>(&checksum), 4);
  return bytes;
}

// Whatever a byte says, with a checksum that fits: an error or a state, and no
// more memory than there are bytes.
TEST(StateBytesTest, LiesWithARightChecksumAreBorne) {
  const std::string bytes = SerializeState(Sample());
  int64_t refused = 0;
  for (size_t i = 0; i + 4 < bytes.size(); ++i) {
    for (const char lie : {'\x00', '\x01', '\x7f', '\xff'}) {
      std::string changed = bytes;
      changed[i] = lie;
      const auto parsed = ParseState(Sealed(changed));
      if (parsed.ok()) {
        EXPECT_EQ(SerializeState(*parsed), Sealed(changed));
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(StateBytesTest, AnotherVersionIsRefusedByItsNumber) {
  AlgorithmState state = Sample();
  state.version = 9;
  const absl::Status status = ParseState(SerializeState(state)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("version 9; allowed: 1"));
}

TEST(StateBytesTest, FieldsOutOfOrderAreRefused) {
  std::string bytes = SerializeState(Sample());
  const size_t at = bytes.find(std::string("\x01\0\0\0b", 5));
  bytes[at + 4] = 'a';
  const absl::Status status = ParseState(Sealed(bytes)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("field 2 of 7"));
}

}  // namespace
}  // namespace dfl::core
