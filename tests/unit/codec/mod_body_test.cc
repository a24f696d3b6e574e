#include "daemon/codec/mod_body.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/rng.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/encoder.h"
#include "gtest/gtest.h"

namespace dfl::codec {
namespace {

using core::BlockScale;

struct Exchanged {
  core::ModOffer offer;
  core::ModAnswer answer;
};

// Of two vectors that are near to each other; the second block has no scale.
Exchanged MakeExchange(int modulus, int64_t n) {
  Rng rng(21);
  std::vector<float> x;
  std::vector<float> own;
  for (int64_t l = 0; l < n; ++l) {
    x.push_back(static_cast<float>(rng.Uniform() - 0.5));
    own.push_back(x.back() + 0.02F * static_cast<float>(rng.Uniform() - 0.5));
  }
  core::ModSpec spec;
  spec.modulus = modulus;
  std::vector<BlockScale> scales(static_cast<size_t>(core::ModBlocks(spec, n)),
                                 {140, 0});
  if (scales.size() > 1) scales[1].e = 0;
  Exchanged exchanged;
  exchanged.offer = core::WriteMod(spec, x, scales, 77);
  exchanged.offer.number = 3;
  exchanged.answer =
      core::ReadMod(exchanged.offer, own, absl::MakeSpan(scales));
  exchanged.answer.gamma = 0.5;
  exchanged.answer.beta = 0.125;
  return exchanged;
}

std::unique_ptr<DecodedMessage> Sent(const EncoderInput& input) {
  auto encoder = Encoder::Create(input);
  EXPECT_TRUE(encoder.ok()) << encoder.status();
  const auto header = ParseHeader((*encoder)->header_bytes());
  EXPECT_TRUE(header.ok()) << header.status();
  EXPECT_TRUE(*header == (*encoder)->header());
  auto opened = OpenMessage(BodyCheck(*header), (*encoder)->Next(1 << 30));
  EXPECT_TRUE(opened.ok()) << opened.status();
  return opened.ok() ? *std::move(opened) : nullptr;
}

TEST(ModBody, OffersAndAnswersArriveAsTheyAre) {
  for (const int modulus : {4, 6, 7, 8, 10, 64, 255, 256}) {
    for (const int64_t n : {1, 255, 256, 700, 2000}) {
      SCOPED_TRACE(testing::Message() << "mod " << modulus << ", n " << n);
      const Exchanged made = MakeExchange(modulus, n);
      const std::vector<float> buffers = {1, -2};
      EncoderInput input;
      input.format.values = core::ValueType::kMod;
      input.format.modulus = modulus;
      input.seed = 77;
      input.buffers = buffers;
      input.offer = &made.offer;
      const auto offer = Sent(input);
      ASSERT_NE(offer, nullptr);
      ASSERT_NE(offer->offer(), nullptr);
      EXPECT_EQ(offer->offer()->number, 3U);
      EXPECT_EQ(offer->offer()->seed, 77U);
      EXPECT_EQ(offer->offer()->spec, made.offer.spec);
      EXPECT_EQ(offer->offer()->scales, made.offer.scales);
      EXPECT_EQ(offer->offer()->checks, made.offer.checks);
      EXPECT_EQ(offer->offer()->codes, made.offer.codes);
      EXPECT_EQ(offer->buffers().size(), 2U);
      EXPECT_EQ(offer->carried(), 0);  // nothing by itself
      std::vector<float> whole(static_cast<size_t>(n));
      EXPECT_FALSE(offer->CopyDense(absl::MakeSpan(whole)).ok());

      const FlatVector difference = core::ModDifference(made.answer);
      input.format.values = core::ValueType::kModAnswer;
      input.offer = nullptr;
      input.answer = &made.answer;
      input.values = difference;
      const auto answer = Sent(input);
      ASSERT_NE(answer, nullptr);
      ASSERT_NE(answer->answer(), nullptr);
      EXPECT_EQ(answer->answer()->number, 3U);
      EXPECT_EQ(answer->answer()->gamma, 0.5);
      EXPECT_EQ(answer->answer()->beta, 0.125);
      EXPECT_EQ(answer->answer()->refused, made.answer.refused);
      EXPECT_EQ(answer->answer()->next_scales, made.answer.next_scales);
      EXPECT_EQ(answer->answer()->q, made.answer.q);
      // Both ends apply the same bits.
      EXPECT_EQ(core::ModDifference(*answer->answer()), difference);
    }
  }
}

// 3 bits a value, a scale and a check a block; about 2 bits back.
TEST(ModBody, CostsWhatItSays) {
  const Exchanged made = MakeExchange(8, 256 * 400);
  const double n = 256 * 400;
  EXPECT_LT(static_cast<double>(EncodeOffer(made.offer).size()),
            n * 3 / 8 + 400 * 3 + 12.5);
  EXPECT_LT(static_cast<double>(EncodeAnswer(made.answer).size()),
            n * 2.2 / 8 + 400 * 2 + 100);
}

TEST(ModBody, RefusesWhatNoEncoderWrites) {
  const Exchanged made = MakeExchange(6, 700);
  const ModLayout layout = {6, 700, 77};
  const std::string offer = EncodeOffer(made.offer);
  const std::string answer = EncodeAnswer(made.answer);
  ASSERT_TRUE(DecodeOffer(layout, offer).ok());
  ASSERT_TRUE(DecodeAnswer(layout, answer).ok());
  const auto refuses = [&](std::string bytes, bool is_offer) {
    const absl::StatusCode code =
        is_offer ? DecodeOffer(layout, bytes).status().code()
                 : DecodeAnswer(layout, bytes).status().code();
    return code == absl::StatusCode::kInvalidArgument;
  };
  for (size_t length = 0; length < offer.size(); ++length) {
    EXPECT_TRUE(refuses(offer.substr(0, length), true)) << length;
  }
  EXPECT_TRUE(refuses(offer + "x", true));
  EXPECT_TRUE(refuses(answer + "x", false));
  EXPECT_TRUE(refuses(answer.substr(0, 20), false));
  for (const double window :
       {0.0, -1.0, 64.5, std::numeric_limits<double>::quiet_NaN()}) {
    std::string bad = offer;
    std::memcpy(bad.data(), &window, sizeof(window));
    EXPECT_TRUE(refuses(bad, true)) << window;
  }
  for (const double gamma :
       {0.0, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    std::string bad = answer;
    std::memcpy(&bad[8], &gamma, sizeof(gamma));
    EXPECT_TRUE(refuses(bad, false)) << gamma;
  }
  // A word of digits that is too large: 6^24 and more.
  std::string bad = offer;
  bad.replace(bad.size() - 8, 8, 8, '\xff');
  EXPECT_TRUE(refuses(bad, true));
  // A scale where there was none: the body is too short for it.
  bad = offer;
  bad[12 + 1] = 100;
  EXPECT_TRUE(refuses(bad, true));
}

TEST(ModBody, HeadersNameModulusAndAreDense) {
  EncodedHeader header;
  header.format.values = core::ValueType::kMod;
  header.format.modulus = 8;
  header.n = header.s = 600;
  header.payload_bytes = MostOfferBytes(8, 600);
  const auto code = [](const EncodedHeader& h) {
    return ParseHeader(SerializeHeader(h)).status().code();
  };
  EXPECT_EQ(code(header), absl::StatusCode::kOk);
  EncodedHeader bad = header;
  bad.format.modulus = 3;
  EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
  bad = header;
  bad.payload_bytes += 1;
  EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
  bad = header;
  bad.payload_bytes = LeastOfferBytes(600) - 1;
  EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
  bad = header;
  bad.format.coordinates = core::Coordinates::kRandom;
  EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace dfl::codec
