#include "daemon/codec/small_integers.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "daemon/base/rng.h"
#include "gtest/gtest.h"

namespace dfl::codec {
namespace {

// Rounded values of a normal distribution, near enough: the sum of 12 uniforms.
std::vector<int16_t> Normal(int64_t count, double width, double centre,
                            uint64_t seed) {
  Rng rng(seed);
  std::vector<int16_t> values;
  for (int64_t i = 0; i < count; ++i) {
    double sum = -6;
    for (int q = 0; q < 12; ++q) sum += rng.Uniform();
    values.push_back(static_cast<int16_t>(std::rint(sum * width + centre)));
  }
  return values;
}

double Entropy(const std::vector<int16_t>& values) {
  std::map<int16_t, int64_t> counts;
  for (const int16_t value : values) ++counts[value];
  double bits = 0;
  for (const auto& [value, count] : counts) {
    const auto share =
        static_cast<double>(count) / static_cast<double>(values.size());
    bits -= static_cast<double>(count) * std::log2(share);
  }
  return bits;
}

std::vector<int16_t> RoundTrip(const std::vector<int16_t>& values,
                               Centre centre) {
  const std::string bytes = EncodeSmallIntegers(values, centre);
  const auto count = static_cast<int64_t>(values.size());
  EXPECT_GE(static_cast<int64_t>(bytes.size()), LeastSmallIntegerBytes(count));
  EXPECT_LE(static_cast<int64_t>(bytes.size()), MostSmallIntegerBytes(count));
  std::vector<int16_t> back(values.size());
  const absl::Status status = DecodeSmallIntegers(bytes, absl::MakeSpan(back));
  EXPECT_TRUE(status.ok()) << status;
  return back;
}

TEST(SmallIntegers, ComeBackWhateverTheyAre) {
  for (const Centre centre : {Centre::kZero, Centre::kMinusHalf}) {
    for (const int64_t count : {0, 1, 3, 255, 4095, 4096, 4097, 65536, 65537}) {
      for (const double width : {0.1, 3.0, 9000.0}) {
        const auto values = Normal(count, width, 0, 7);
        ASSERT_EQ(RoundTrip(values, centre), values) << count << " " << width;
      }
    }
    const std::vector<int16_t> extremes = {std::numeric_limits<int16_t>::min(),
                                           0,
                                           std::numeric_limits<int16_t>::max(),
                                           -127,
                                           126,
                                           127,
                                           -128};
    EXPECT_EQ(RoundTrip(extremes, centre), extremes);
  }
}

// Of a shape that has a table within 2 % of the entropy, and 5 bytes.
TEST(SmallIntegers, TakeLittleMoreThanTheirEntropy) {
  for (const double width : {0.4, 0.8, 1.3, 2.0, 5.0, 11.0}) {
    const auto around_zero = Normal(60000, width, 0, 3);
    EXPECT_LE(8.0 * static_cast<double>(
                        EncodeSmallIntegers(around_zero, Centre::kZero).size()),
              1.02 * Entropy(around_zero) + 200)
        << width;
    const auto around_half = Normal(60000, width, -0.5, 4);
    EXPECT_LE(
        8.0 * static_cast<double>(
                  EncodeSmallIntegers(around_half, Centre::kMinusHalf).size()),
        1.02 * Entropy(around_half) + 200)
        << width;
  }
  // Few values pay for one state and a table's name.
  EXPECT_EQ(
      EncodeSmallIntegers(std::vector<int16_t>(200), Centre::kZero).size(), 5U);
}

// Heavy tails find the other shape.
TEST(SmallIntegers, FollowHeavyTails) {
  Rng rng(5);
  std::vector<int16_t> values;
  for (int i = 0; i < 60000; ++i) {
    const double magnitude = -2 * std::log(1 - rng.Uniform());
    values.push_back(static_cast<int16_t>(
        std::rint(rng.Bernoulli(0.5) ? magnitude : -magnitude)));
  }
  EXPECT_LE(8.0 * static_cast<double>(
                      EncodeSmallIntegers(values, Centre::kZero).size()),
            1.03 * Entropy(values) + 200);
}

// Of six tables, made by another implementation.
TEST(SmallIntegers, TablesArePinned) {
  const std::vector<int16_t> values = {0, 1, -1, 0, 2, 0, 0, -3, 300};
  for (const char* hex :
       {"008c53060202507d90ff0f2c01", "0824650100c6f3ff0f2c01",
        "88ec4b020073f5ff0f2c01", "46b50505009821ff0f2c01",
        "cdf2980100710ccef12c01", "241b88d62f24482358ff0f2c01"}) {
    std::vector<int16_t> out(values.size());
    const absl::Status status =
        DecodeSmallIntegers(absl::HexStringToBytes(hex), absl::MakeSpan(out));
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(out, values) << hex;
  }
}

TEST(SmallIntegers, EscapesComeLast) {
  const std::vector<int16_t> values = {0, 1, -1, 0, 2, 0, 0, -3, 300};
  const std::string bytes = EncodeSmallIntegers(values, Centre::kZero);
  // 300 = 0x012c.
  EXPECT_EQ(absl::BytesToHexString(bytes.substr(bytes.size() - 2)), "2c01");
}

// Any change of a stream is an error or other values, after bounded work.
TEST(SmallIntegers, RefuseWhatNoEncoderWrites) {
  const auto values = Normal(3000, 1.2, 0, 9);
  const std::string good = EncodeSmallIntegers(values, Centre::kZero);
  std::vector<int16_t> out(values.size());
  const auto refused = [&](const std::string& bytes) {
    return DecodeSmallIntegers(bytes, absl::MakeSpan(out)).code() ==
           absl::StatusCode::kInvalidArgument;
  };
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_TRUE(refused(good.substr(0, length))) << length;
  }
  EXPECT_TRUE(refused(good + "x"));
  std::string bad = good;
  bad[0] = 63;  // no such table
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad[4] = '\xff';  // a state beyond 2^31
  EXPECT_TRUE(refused(bad));
  int64_t taken = 0;
  for (size_t i = 1; i < good.size(); ++i) {
    bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    taken += refused(bad) ? 0 : 1;
  }
  // The last state tells nearly all of them.
  EXPECT_LE(taken, 3);
}

}  // namespace
}  // namespace dfl::codec
