#include "daemon/codec/coded_steps.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "daemon/base/rng.h"
#include "daemon/codec/step_code.h"
#include "gtest/gtest.h"

namespace dfl::codec {
namespace {

// Codes of a normal distribution in steps of `step`.
core::StepCodes Codes(int bits, int vectors, int64_t n, float step) {
  core::StepCodes codes(bits, vectors, n);
  Rng rng(11);
  for (int q = 0; q < vectors; ++q) {
    std::vector<float> target;
    for (int64_t l = 0; l < n; ++l) {
      float sum = -6;
      for (int i = 0; i < 12; ++i) sum += static_cast<float>(rng.Uniform());
      target.push_back(sum);
    }
    const std::vector<float> base(static_cast<size_t>(n), 0.0F);
    core::CodeSteps(q, target, base, step, codes);
  }
  return codes;
}

FlatVector Decoded(const core::StepCodes& codes, const std::string& bytes) {
  FlatVector values(codes.values.size());
  const absl::Status status = DecodeCodedSteps(codes.bits, codes.vectors, bytes,
                                               absl::MakeSpan(values));
  EXPECT_TRUE(status.ok()) << status;
  return values;
}

TEST(CodedSteps, ComeBackToTheLastBit) {
  for (const int bits : {1, 2, 4, 8, 16}) {
    for (const int vectors : {1, 2}) {
      core::StepCodes codes = Codes(bits, vectors, 700, 0.25F);
      EXPECT_EQ(Decoded(codes, EncodeCodedSteps(codes)), codes.values);
      // Blocks of their own steps, and one without.
      codes.steps[0] = 0;
      for (int l = 0; l < 256; ++l) codes.values[l] = 0;
      EXPECT_EQ(Decoded(codes, EncodeCodedSteps(codes)), codes.values);
    }
  }
}

// Four bits of which most codes use two: less than two thirds of the raw form.
TEST(CodedSteps, AreShorterThanRawOnes) {
  const core::StepCodes codes = Codes(4, 1, 20000, 0.8F);
  EXPECT_LT(EncodeCodedSteps(codes).size(), EncodeSteps(codes).size() * 2 / 3);
}

TEST(CodedSteps, RefuseWhatDoesNotFit) {
  const core::StepCodes codes = Codes(4, 1, 300, 0.1F);
  const std::string good = EncodeCodedSteps(codes);
  FlatVector out(300);
  const auto refused = [&](const std::string& bytes, int bits = 4) {
    return DecodeCodedSteps(bits, 1, bytes, absl::MakeSpan(out)).code() ==
           absl::StatusCode::kInvalidArgument;
  };
  EXPECT_FALSE(refused(good));
  EXPECT_TRUE(refused(good, 2));  // codes beyond two bits
  EXPECT_TRUE(refused(good.substr(0, 3)));
  std::string bad = good;
  bad[0] = 2;
  EXPECT_TRUE(refused(bad));
  bad = good;
  const float step = -1;
  std::memcpy(&bad[1], &step, sizeof(step));
  EXPECT_TRUE(refused(bad));
}

}  // namespace
}  // namespace dfl::codec
