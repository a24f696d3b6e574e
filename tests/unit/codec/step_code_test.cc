// Increments of replicas in steps: the bytes, their number, and what is
// refused.
#include "daemon/codec/step_code.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "daemon/codec/encoder.h"
#include "daemon/core/vector/flat_vector.h"
#include "gtest/gtest.h"
#include "tests/unit/codec/naive_codec.h"

namespace dfl::codec {
namespace {

core::StepCodes Signs(const std::vector<float>& v, int vectors = 1) {
  const int64_t n = static_cast<int64_t>(v.size()) / vectors;
  core::StepCodes codes(1, vectors, n);
  const std::vector<float> base(n, 0.0F);
  for (int64_t q = 0; q < vectors; ++q) {
    core::CodeSigns(q, absl::MakeConstSpan(v).subspan(q * n, n), base, codes);
  }
  return codes;
}

Message Encode(const core::StepCodes& codes) {
  EncoderInput input;
  input.format.values = core::ValueType::kSteps;
  input.format.bits = codes.bits;
  input.format.vectors = codes.vectors;
  input.values = codes.values;
  input.steps = &codes;
  return EncodeWhole(input);
}

absl::StatusOr<FlatVector> Decode(const Message& message, int64_t n) {
  auto opened = OpenWhole(message, n, 0);
  if (!opened.ok()) return opened.status();
  FlatVector values(static_cast<size_t>(n), 0.0F);
  core::AddValues(**opened, 1, absl::MakeSpan(values));
  return values;
}

TEST(StepCode, BytesArePinned) {
  // |v|_1 / 10 = 1, so the step is 2; signs + - + + - + + + and + -.
  EXPECT_EQ(ToHex(EncodeSteps(Signs({1, -1, 2, 1, -1, 0, 1, 1, 1, -1}))),
            "00000040"
            "ed01");
  // Two vectors of two, each with a step of its own.
  EXPECT_EQ(ToHex(EncodeSteps(Signs({1, -1, 0, 0}, 2))),
            "00000040"
            "01"
            "00000000"
            "00");
  // Codes -2, 1, 0, -1, 1 in 2 bits: 0, 3, 2, 1, 3.
  core::StepCodes codes(2, 1, 5);
  core::CodeSteps(0, {-9, 1.5F, 0.4F, -0.4F, 9}, std::vector<float>(5, 0.0F), 1,
                  codes);
  EXPECT_EQ(codes.values, (FlatVector{-1.5, 1.5, 0.5, -0.5, 1.5}));
  EXPECT_EQ(ToHex(EncodeSteps(codes)),
            "0000803f"
            "6c03");
  const Message message = Encode(codes);
  EXPECT_EQ(ToHex(message.header).substr(0, 8), "01010501");
}

TEST(StepCode, ReceiversDecodeWhatTheSenderAdded) {
  Rng rng(81);
  for (int bits = 1; bits <= 16; ++bits) {
    for (const int vectors : {1, 2, 3, 16}) {
      for (const int64_t n : {1, 7, 255, 256, 257, 1000}) {
        SCOPED_TRACE(absl::StrCat(bits, " bits, ", vectors, " of ", n));
        core::StepCodes codes(bits, vectors, n);
        for (int64_t q = 0; q < vectors; ++q) {
          const std::vector<float> v = NormalValues(n, 3, rng.Next());
          const std::vector<float> base = NormalValues(n, 1, rng.Next());
          if (bits == 1 && q % 2 == 0) {
            core::CodeSigns(q, v, base, codes);
          } else {
            core::CodeSteps(
                q, v, base,
                static_cast<float>(rng.Uniform()) * std::ldexp(1.0F, 4 - bits),
                codes);
          }
        }
        const auto decoded = Decode(Encode(codes), vectors * n);
        ASSERT_TRUE(decoded.ok()) << decoded.status();
        EXPECT_EQ(*decoded, codes.values);
      }
    }
  }
}

TEST(StepCode, ExtremeStepsAreExactToo) {
  for (const float step : {core::kLeastStep, core::kMostStep, 1e30F, 1e-30F}) {
    core::StepCodes codes(16, 1, 3);
    core::CodeSteps(0, {3e38F, -3e38F, step}, std::vector<float>(3, 0.0F), step,
                    codes);
    EXPECT_EQ(codes.steps[0], std::min(step, core::kMostStep));
    const auto decoded = Decode(Encode(codes), 3);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, codes.values);
  }
  // Less is nothing.
  EXPECT_EQ(Signs({1e-31F, -1e-31F}).values, (FlatVector{0, 0}));
}

TEST(StepCode, ASignCostsABit) {
  for (const int64_t n : {268362, 1000000}) {
    const Message message = Encode(Signs(NormalValues(n, 1, 82)));
    const auto bytes =
        static_cast<int64_t>(message.header.size() + message.body.size());
    EXPECT_GE(bytes, n / 8 + n / 64);
    EXPECT_LE(bytes, n / 8 + n / 64 + 64);
  }
  for (const int bits : {2, 3, 8}) {
    core::StepCodes codes(bits, 1, 100000);
    EXPECT_LE(Encode(codes).body.size(), 100000U * bits / 8 + 100000 / 64 + 64);
  }
}

TEST(StepCode, WhatIsNotFiniteIsNotSent) {
  const core::StepCodes codes =
      Signs({1, std::numeric_limits<float>::quiet_NaN()});
  EncoderInput input;
  input.format.values = core::ValueType::kSteps;
  input.format.bits = input.format.vectors = 1;
  input.values = codes.values;
  input.steps = &codes;
  EXPECT_EQ(Encoder::Create(input).status().code(),
            absl::StatusCode::kInvalidArgument);
}

absl::Status DecodeOf(const std::string& bytes, size_t n, int bits = 1) {
  std::vector<float> out(n);
  return DecodeSteps(bits, 1, bytes, absl::MakeSpan(out));
}

TEST(StepCode, StepsAndBitsThatNobodyHonestSendsAreRefused) {
  const std::string good = EncodeSteps(Signs({1, -1, 1}));
  EXPECT_TRUE(DecodeOf(good, 3).ok());
  for (const float step :
       {-1.0F, -0.0F, 1e-38F, 3e38F, std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    std::string bytes = good;
    std::memcpy(bytes.data(), &step, 4);
    EXPECT_EQ(DecodeOf(bytes, 3).code(), absl::StatusCode::kInvalidArgument)
        << step;
  }
  std::string padded = good;
  padded[4] = static_cast<char>(padded[4] | 8);
  EXPECT_FALSE(DecodeOf(padded, 3).ok());
  const std::string codes_without_step("\0\0\0\0\1", 5);
  EXPECT_FALSE(DecodeOf(codes_without_step, 3).ok());
}

// Any bytes in a header and body that are right give finite values or an error.
TEST(StepCode, AnyBytesGiveFiniteValuesOrAnError) {
  Rng rng(83);
  int64_t taken = 0;
  for (int round = 0; round < 20000; ++round) {
    const int bits = 1 + static_cast<int>(rng.Below(16));
    const auto n = static_cast<size_t>(1 + rng.Below(20));
    std::string bytes(
        static_cast<size_t>(StepCodeBytes(bits, 1, static_cast<int64_t>(n))),
        '\0');
    for (char& c : bytes) c = static_cast<char>(rng.Next());
    std::vector<float> out(n);
    if (!DecodeSteps(bits, 1, bytes, absl::MakeSpan(out)).ok()) continue;
    ++taken;
    for (const float value : out) ASSERT_TRUE(std::isfinite(value));
  }
  EXPECT_GT(taken, 100);
}

TEST(StepCode, HeadersOfStepsAreDenseAndOfEqualVectors) {
  EncodedHeader header;
  header.format.values = core::ValueType::kSteps;
  header.format.bits = 16;
  header.format.vectors = 2;
  header.n = header.s = 600;
  header.payload_bytes = header.value_bytes();
  EXPECT_EQ(header.payload_bytes, 2 * (4 + 512 + 4 + 88));
  const auto parsed = ParseHeader(SerializeHeader(header));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(*parsed == header);
  const auto refused = [](EncodedHeader bad) {
    bad.payload_bytes = bad.value_bytes();
    return ParseHeader(SerializeHeader(bad)).status().code() ==
           absl::StatusCode::kInvalidArgument;
  };
  EncodedHeader odd = header;
  odd.n = odd.s = 601;
  EXPECT_TRUE(refused(odd));
  EncodedHeader seeded = header;
  seeded.seed = 1;
  EXPECT_TRUE(refused(seeded));
  EncodedHeader sparse = header;
  sparse.format.coordinates = core::Coordinates::kRandom;
  EXPECT_TRUE(refused(sparse));
}

}  // namespace
}  // namespace dfl::codec
