#include "daemon/base/checksum.h"

#include <string>

#include "daemon/base/rng.h"
#include "daemon/base/sha256.h"
#include "gtest/gtest.h"

namespace dfl {
namespace {

TEST(Crc32c, MatchesTheStandardCheckValue) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32c, HardwareAndPortableFormsAgreeOnEveryLength) {
  Rng rng(7);
  std::string data;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Crc32c(data), internal::ExtendCrc32cPortable(0, data));
    data.push_back(static_cast<char>(rng.Next()));
  }
}

TEST(Crc32c, LongTextsAgreeAtEveryBoundaryOfTheLanes) {
  Rng rng(8);
  std::string data;
  while (data.size() < 5000) data.push_back(static_cast<char>(rng.Next()));
  for (size_t length = 990; length < data.size(); ++length) {
    const std::string text = data.substr(data.size() - length);
    ASSERT_EQ(ExtendCrc32c(length, text),
              internal::ExtendCrc32cPortable(length, text))
        << length;
  }
}

TEST(Crc32c, ExtendsOverPieces) {
  EXPECT_EQ(ExtendCrc32c(Crc32c("1234"), "56789"), Crc32c("123456789"));
}

TEST(Sha256, MatchesTheStandardExample) {
  EXPECT_EQ(Sha256Hex("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace dfl
