#include "daemon/codec/value_code.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "daemon/codec/rounding.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::codec {
namespace {

using core::ValueType;

constexpr ValueType kLossy[] = {ValueType::kFp16, ValueType::kBf16,
                                ValueType::kInt8};
constexpr ValueType kAll[] = {ValueType::kFp32, ValueType::kFp16,
                              ValueType::kBf16, ValueType::kInt8};

std::string Encode(ValueType type, uint64_t seed,
                   const std::vector<float>& values) {
  std::string bytes(ValueBytes(type, static_cast<int64_t>(values.size())), 0);
  EncodeBlock(type, seed, 0, values, bytes.data());
  return bytes;
}

std::vector<float> Decode(ValueType type, const std::string& bytes,
                          size_t count) {
  std::vector<float> values(count);
  DecodeRun(type, bytes.data(), 0, absl::MakeSpan(values));
  return values;
}

// What a receiver that holds `own` adds for the block `bytes`.
std::vector<float> Differences(ValueType type, uint64_t seed,
                               const std::string& bytes,
                               const std::vector<float>& own) {
  std::vector<float> sum(own.size());
  ValueRun run;
  run.values = bytes.data();
  run.rounding_seed = seed;
  run.count = static_cast<int64_t>(own.size());
  DifferenceSink sink;
  sink.own = own.data();
  sink.weight = 1;
  sink.sum = sum.data();
  AddDifferences(type, run, sink);
  return sum;
}

// Values of every kind that a format carries.
std::vector<float> Assorted(ValueType type) {
  std::vector<float> values = {
      0.0f,     1.0f,     -1.0f,     0.1f,     -0.3f,     3.14159f,
      6.1e-5f,  -6.2e-5f, 5.9e-8f,   1e-9f,    -1e-12f,   1e-30f,
      1.2e-38f, 1e-40f,   -1.4e-45f, 65504.0f, -65519.0f, 65520.0f,
      70000.0f, -1e6f,    1e20f,     -8e37f};
  if (type != ValueType::kInt8) {
    values.push_back(std::numeric_limits<float>::max());
    values.push_back(-std::numeric_limits<float>::max());
    values.push_back(3.39e38f);
  }
  return values;
}

TEST(ValueCode, SizesAreThoseOfTheFormat) {
  EXPECT_EQ(ValueBytes(ValueType::kFp32, 257), 1028);
  EXPECT_EQ(ValueBytes(ValueType::kFp16, 257), 514);
  EXPECT_EQ(ValueBytes(ValueType::kBf16, 257), 514);
  EXPECT_EQ(ValueBytes(ValueType::kInt8, 257), 265);
  EXPECT_EQ(ValueBytes(ValueType::kInt8, 256), 260);
}

TEST(ValueCode, DrawsAreTheUpperHalvesOfSplitmix64) {
  for (uint64_t q = 0; q < 100; ++q) {
    EXPECT_EQ(RoundingDraw(42, q), Mix64(42 + q * 0x9E3779B97F4A7C15u) >> 32);
  }
}

TEST(ValueCode, Fp32IsExact) {
  const std::vector<float> values = Assorted(ValueType::kFp32);
  const std::string bytes = Encode(ValueType::kFp32, 1, values);
  EXPECT_EQ(Decode(ValueType::kFp32, bytes, values.size()), values);
}

// Every finite fp16 and bf16 number survives whatever the draws are.
TEST(ValueCode, GridValuesAreKept) {
  for (const ValueType type : {ValueType::kFp16, ValueType::kBf16}) {
    const uint32_t exponents = type == ValueType::kFp16 ? 0x7C00 : 0x7F80;
    for (uint32_t code = 0; code < 0x10000; ++code) {
      if ((code & exponents) == exponents) continue;
      const auto raw = static_cast<uint16_t>(code);
      std::string bytes(2, '\0');
      std::memcpy(bytes.data(), &raw, 2);
      const std::vector<float> value = Decode(type, bytes, 1);
      ASSERT_EQ(Encode(type, code, value), bytes) << code;
      if (type == ValueType::kFp16) {
        const int exponent = static_cast<int>(code >> 10 & 31);
        const auto mantissa = static_cast<double>(code & 1023);
        ASSERT_EQ(std::fabs(value[0]),
                  exponent == 0 ? std::ldexp(mantissa, -24)
                                : std::ldexp(1024 + mantissa, exponent - 25));
      }
    }
  }
}

// The mean of many roundings of one value is the value: within five standard
// errors, where the standard deviation is at most half a step.
TEST(ValueCode, RoundingIsUnbiased) {
  constexpr int kDraws = 40000;
  struct Case {
    float value;
    double fp16_step;
    double bf16_step;
  };
  const Case cases[] = {
      {0.1003f, 0x1p-14, 0x1p-11}, {-0.7f, 0x1p-11, 0x1p-8},
      {1.0001f, 0x1p-10, 0x1p-7},  {-12345.6f, 8, 64},
      {6.0e-5f, 0x1p-24, 0x1p-22}, {-3.3e-6f, 0x1p-24, 0x1p-26},
      {2.0e-8f, 0x1p-24, 0x1p-33}, {-1.0e-9f, 0x1p-24, 0x1p-37},
      {1e-39f, 0x1p-24, 0x1p-133}, {-3e-41f, 0x1p-24, 0x1p-133},
  };
  for (const Case& c : cases) {
    for (const ValueType type : kLossy) {
      // Two values, so that int8's scale is not that of `value` itself.
      const std::vector<float> values = {c.value, 1.7f * c.value};
      const double step = type == ValueType::kFp16 ? c.fp16_step
                          : type == ValueType::kBf16
                              ? c.bf16_step
                              : 1.7 * std::fabs(c.value) / 126;
      const double floor_step =
          type == ValueType::kInt8 ? std::max(step, 0x1p-126) : step;
      double sum = 0;
      for (uint64_t seed = 0; seed < kDraws; ++seed) {
        const std::string bytes =
            Encode(type, DeriveSeed(3, "mean", seed), values);
        const double decoded = Decode(type, bytes, 2)[0];
        ASSERT_LE(std::fabs(decoded - c.value), floor_step * 1.0001);
        sum += decoded - c.value;
      }
      EXPECT_NEAR(sum / kDraws / floor_step, 0, 5 * 0.5 / std::sqrt(kDraws))
          << ToString(type) << " " << c.value;
    }
  }
}

TEST(ValueCode, Int8CodesNeverNeedClamping) {
  Rng rng(4);
  for (int round = 0; round < 20000; ++round) {
    std::vector<float> values(1 + rng.Below(8));
    const float size = std::ldexp(1.0f, static_cast<int>(rng.Below(250)) - 125);
    for (float& v : values) {
      v = size * (static_cast<float>(rng.Uniform()) - 0.5f);
    }
    const std::string bytes = Encode(ValueType::kInt8, rng.Next(), values);
    float scale;
    std::memcpy(&scale, bytes.data(), 4);
    for (size_t k = 0; k < values.size(); ++k) {
      const auto code = static_cast<int8_t>(bytes[4 + k]);
      EXPECT_GE(code, -127);
      EXPECT_NEAR(code, static_cast<double>(values[k]) / scale, 1.0001);
    }
    ASSERT_TRUE(CheckValues(ValueType::kInt8, bytes.data(),
                            static_cast<int64_t>(values.size()))
                    .ok());
  }
}

TEST(ValueCode, Int8BlockOfZerosHasScaleZero) {
  const std::vector<float> zeros(5, 0.0f);
  const std::string bytes = Encode(ValueType::kInt8, 1, zeros);
  EXPECT_EQ(bytes, std::string(9, '\0'));
  EXPECT_EQ(Decode(ValueType::kInt8, bytes, 5), zeros);
  const std::vector<float> own = {1, -2, 0, 1e-40f, 3e38f};
  EXPECT_EQ(Differences(ValueType::kInt8, 1, bytes, own),
            (std::vector<float>{-1, 2, 0, -1e-40f, -3e38f}));
}

TEST(ValueCode, EqualValuesDifferByExactlyZero) {
  for (const ValueType type : kAll) {
    const std::vector<float> values = Assorted(type);
    for (uint64_t seed = 0; seed < 500; ++seed) {
      const std::string bytes = Encode(type, seed, values);
      // Together, where int8's scale is huge, and one by one.
      for (const float d : Differences(type, seed, bytes, values)) {
        ASSERT_EQ(d, 0) << ToString(type) << " seed " << seed;
      }
      for (const float v : values) {
        ASSERT_EQ(Differences(type, seed, Encode(type, seed, {v}), {v})[0], 0)
            << ToString(type) << " seed " << seed << " value " << v;
      }
    }
  }
}

// A difference far below one step is neither lost nor biased: the mean of the
// difference is the true one.
TEST(ValueCode, PartOfAStepMovesByItselfOnAverage) {
  constexpr int kDraws = 40000;
  struct Case {
    ValueType type;
    double step;
  };
  // Around 0.75: fp16 has steps of 2^-11, bf16 of 2^-8; int8 beside a 1.26 in
  // its block has 0.01.
  for (const Case& c :
       {Case{ValueType::kFp16, 0x1p-11}, Case{ValueType::kBf16, 0x1p-8},
        Case{ValueType::kInt8, 0.01}}) {
    for (const double part : {0.1, 0.3, 0.5, -0.1, -0.3, -0.5}) {
      for (const float remote : {0.7501f, -0.7503f}) {
        const auto own = static_cast<float>(remote - part * c.step);
        const double truth = static_cast<double>(remote) - own;
        double sum = 0;
        for (uint64_t seed = 0; seed < kDraws; ++seed) {
          const uint64_t draw = DeriveSeed(5, "part", seed);
          const std::string bytes = Encode(c.type, draw, {remote, 1.26f});
          sum += Differences(c.type, draw, bytes, {own, 1.26f})[0];
        }
        EXPECT_NEAR(sum / kDraws / c.step, truth / c.step,
                    5 * 0.5 / std::sqrt(kDraws))
            << ToString(c.type) << " " << part << " " << remote;
      }
    }
  }
}

TEST(ValueCode, OwnValuesFarOutsideTheSendersRangeAreHandledOnAverage) {
  constexpr int kDraws = 20000;
  for (const float own : {1.0f, -3.3f, 40.0f, 1000.5f, -1e8f, 1e30f}) {
    for (const ValueType type : kLossy) {
      double sum = 0;
      for (uint64_t seed = 0; seed < kDraws; ++seed) {
        const uint64_t draw = DeriveSeed(6, "far", seed);
        const std::string bytes = Encode(type, draw, {0.01f});
        const float d = Differences(type, draw, bytes, {own})[0];
        ASSERT_TRUE(std::isfinite(d));
        sum += d;
      }
      const double truth = 0.01 - static_cast<double>(own);
      EXPECT_NEAR(sum / kDraws / truth, 1, 1e-4) << ToString(type) << own;
    }
  }
}

TEST(ValueCode, SaturatedFp16SaysOnlyThatItIsBeyond) {
  const std::string up = Encode(ValueType::kFp16, 1, {1e6f});
  const std::string down = Encode(ValueType::kFp16, 1, {-1e6f});
  EXPECT_EQ(Decode(ValueType::kFp16, up, 1)[0], 65504);
  EXPECT_EQ(Decode(ValueType::kFp16, down, 1)[0], -65504);
  EXPECT_EQ(Differences(ValueType::kFp16, 1, up, {7e4f})[0], 0);
  EXPECT_EQ(Differences(ValueType::kFp16, 1, up, {3e38f})[0], 0);
  EXPECT_EQ(Differences(ValueType::kFp16, 1, down, {-7e4f})[0], 0);
  // On the other side, and within the range, it does carry something.
  EXPECT_EQ(Differences(ValueType::kFp16, 1, up, {1.0f})[0], 65503);
  EXPECT_LT(Differences(ValueType::kFp16, 1, down, {7e4f})[0], -130000);
}

TEST(ValueCode, NothingFiniteBecomesInfinite) {
  const float largest = std::numeric_limits<float>::max();
  for (uint64_t seed = 0; seed < 200; ++seed) {
    for (const ValueType type : {ValueType::kFp16, ValueType::kBf16}) {
      const std::string bytes = Encode(type, seed, {largest, -largest});
      ASSERT_TRUE(CheckValues(type, bytes.data(), 2).ok());
      // The true difference is beyond float32 only for opposite ends.
      const std::string small = Encode(type, seed, {1.0f, -1.0f});
      for (const float d :
           Differences(type, seed, small, {-largest, largest})) {
        ASSERT_TRUE(std::isfinite(d));
      }
    }
    const std::string bytes =
        Encode(ValueType::kInt8, seed, {0x1p126f, -0x1p126f});
    ASSERT_TRUE(CheckValues(ValueType::kInt8, bytes.data(), 2).ok());
    for (const float v : Decode(ValueType::kInt8, bytes, 2)) {
      ASSERT_TRUE(std::isfinite(v));
    }
  }
}

TEST(ValueCode, NonFiniteValuesAreNamed) {
  const auto message = [](ValueType type, const auto& raw, int64_t count) {
    return CheckValues(type, reinterpret_cast<const char*>(raw.data()), count)
        .ToString();
  };
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    std::vector<float> values(10000, 1.0f);
    values[9000] = bad;
    values[9500] = bad;
    EXPECT_THAT(message(ValueType::kFp32, values, 10000),
                ::testing::HasSubstr("sent value 9000"));
  }
  for (const uint16_t bad : {0x7C00, 0xFC00, 0x7E01}) {
    const std::array<uint16_t, 3> values = {0, 0x7BFF, bad};
    EXPECT_THAT(message(ValueType::kFp16, values, 3),
                ::testing::HasSubstr("sent value 2"));
  }
  for (const uint16_t bad : {0x7F80, 0xFF80, 0x7FC1}) {
    const std::array<uint16_t, 3> values = {0, bad, 0x7F7F};
    EXPECT_THAT(message(ValueType::kBf16, values, 3),
                ::testing::HasSubstr("sent value 1"));
  }
  for (const float bad : {INFINITY, NAN, -1.0f, -0.0f, 1e-40f, 1e37f}) {
    std::string bytes = Encode(ValueType::kInt8, 1, {1.0f, 2.0f});
    std::memcpy(bytes.data(), &bad, 4);
    EXPECT_THAT(message(ValueType::kInt8, bytes, 2),
                ::testing::HasSubstr("scale of block 0"))
        << bad;
  }
}

}  // namespace
}  // namespace dfl::codec
