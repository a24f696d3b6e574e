// Mass in lossy formats: what the giver thinks was carried is what is decoded.
#include "daemon/codec/mass_codec.h"

#include <cmath>
#include <limits>
#include <vector>

#include "daemon/core/vector/flat_vector.h"
#include "gtest/gtest.h"
#include "tests/unit/codec/naive_codec.h"

namespace dfl::codec {
namespace {

TEST(MassCodec, TheTakerDecodesWhatTheGiverCarried) {
  MassCodec codec;
  for (const core::ValueType type :
       {core::ValueType::kFp16, core::ValueType::kBf16,
        core::ValueType::kInt8}) {
    codec.Set(type, 91);
    for (const float deviation : {1e-30F, 1e-7F, 1.0F, 1e5F}) {
      SCOPED_TRACE(ToString(type) + " " + std::to_string(deviation));
      std::vector<float> mass = NormalValues(1000, deviation, 92);
      mass[3] = 0;
      const auto written = codec.Write(NodeId("b"), 7, mass);
      ASSERT_TRUE(written.has_value());
      EncoderInput input;
      input.format = written->format;
      input.seed = written->seed;
      input.values = mass;
      const auto message = OpenWhole(EncodeWhole(input), 1000, 0);
      ASSERT_TRUE(message.ok()) << message.status();
      FlatVector decoded(1000, 0.0F);
      core::AddValues(**message, 1, absl::MakeSpan(decoded));
      EXPECT_EQ(decoded, written->carried);
    }
  }
}

TEST(MassCodec, RoundingsAreOfTheParcel) {
  MassCodec codec;
  codec.Set(core::ValueType::kInt8, 93);
  const std::vector<float> mass = NormalValues(300, 1, 94);
  const auto carried = [&](const char* to, uint64_t sequence) {
    return codec.Write(NodeId(to), sequence, mass)->carried;
  };
  EXPECT_EQ(carried("b", 1), carried("b", 1));
  EXPECT_NE(carried("b", 1), carried("b", 2));
  EXPECT_NE(carried("b", 1), carried("c", 1));
}

// Sent again and again, what was kept is carried: the error does not add up.
TEST(MassCodec, WhatIsKeptIsCarriedLater) {
  MassCodec codec;
  codec.Set(core::ValueType::kInt8, 95);
  const std::vector<float> mass = NormalValues(300, 1, 96);
  FlatVector pending(300, 0.0F);
  FlatVector sum(300, 0.0F);
  for (uint64_t round = 1; round <= 200; ++round) {
    core::AddScaled(1, mass, absl::MakeSpan(pending));
    const FlatVector carried =
        codec.Write(NodeId("b"), round, pending)->carried;
    core::AddScaled(-1, carried, absl::MakeSpan(pending));
    core::AddScaled(1, carried, absl::MakeSpan(sum));
  }
  for (size_t l = 0; l < mass.size(); ++l) {
    EXPECT_NEAR(sum[l], 200 * mass[l], 0.05);
  }
}

TEST(MassCodec, Fp32AndWhatIsNotFiniteStayAsTheyAre) {
  MassCodec codec;
  const std::vector<float> good = {1, 2};
  EXPECT_FALSE(codec.Write(NodeId("b"), 1, good).has_value());
  codec.Set(core::ValueType::kInt8, 97);
  const std::vector<float> bad = {1, std::numeric_limits<float>::infinity()};
  EXPECT_FALSE(codec.Write(NodeId("b"), 1, bad).has_value());
  EXPECT_TRUE(codec.Write(NodeId("b"), 1, good).has_value());
}

}  // namespace
}  // namespace dfl::codec
