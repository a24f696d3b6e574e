#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/edge_reference.h"
#include "daemon/codec/encoder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/codec/naive_codec.h"

namespace dfl::codec {
namespace {

using ::testing::HasSubstr;

EncoderInput Input(core::MessageFormat format, int64_t sent, uint64_t seed,
                   const std::vector<float>& values,
                   const std::vector<float>& buffers) {
  EncoderInput input;
  input.format = format;
  input.sent = sent;
  input.seed = seed;
  input.values = values;
  input.buffers = buffers;
  return input;
}

// One whole message of each format, header and body. A change here is a change
// of the wire format and needs a new codec version.
TEST(Message, BytesArePinnedForEver) {
  const std::vector<float> values = {0.5f,  -0.25f, 1.0f / 3, 0.1f,
                                     -7.0f, 1e-6f,  0.0f,     12.5f,
                                     -0.6f, 2e-9f,  100.1f,   -0.0003f};
  const std::vector<float> buffers = {1.5f, -2.25f};
  const std::vector<std::string> golden = {
      "010101000c0000000c00000088776655443322110200000038000000000000009a8b834e"
      "0000003f000080beabaaaa3ecdcccc3d0000e0c0bd3786350000000000004841"
      "9a9919bf5f7009313333c84252499db90000c03f000010c02c24f3e1",
      "010102000c0000000c0000008877665544332211020000002000000000000000ef4503b6"
      "003800b45535672e00c711000000404acdb800004256ea8c0000c03f000010c0"
      "8946c3b1",
      "010103000c0000000c0000008877665544332211020000002000000000000000e604b8a3"
      "003f80beab3ecd3de0c08735000048411abf0a31c8429db90000c03f000010c0"
      "e4eec9ae",
      "010104000c0000000c00000088776655443322110200000018000000000000002eabd500"
      "b6604b3f00ff0000f700000f00007e000000c03f000010c01d561a87",
      "010201000c000000050000008877665544332211020000001c0000000000000032b61b91"
      "0000003fabaaaa3e0000e0c0bd3786359a9919bf0000c03f000010c0af7a183a",
      "010202000c000000050000008877665544332211020000001200000000000000d009885e"
      "0038553500c71100ccb80000c03f000010c0227c48b4",
      "010203000c000000050000008877665544332211020000001200000000000000d948334b"
      "003faa3ee0c0863519bf0000c03f000010c0c31a9542",
      "010204000c0000000500000088776655443322110200000011000000000000008f0857f8"
      "398e633d09068200f50000c03f000010c0faa77b2c",
      "010301000c000000050000008877665544332211020000001e00000000000000f12cc47b"
      "91050000003f0000e0c0000048419a9919bf3333c8420000c03f000010c03b61"
      "e693",
      "010302000c0000000500000088776655443322110200000014000000000000007e114a95"
      "9105003800c7404acdb841560000c03f000010c0309c51f8",
      "010303000c0000000500000088776655443322110200000014000000000000007750f180"
      "9105003fe0c048411abfc8420000c03f000010c05d221498",
      "010304000c0000000500000088776655443322110200000013000000000000004c928812"
      "9105b6604b3f00f710ff7e0000c03f000010c043d148b4"};
  const std::vector<core::MessageFormat> formats = AllFormats();
  for (size_t f = 0; f < formats.size(); ++f) {
    const Message message =
        EncodeWhole(Input(formats[f], 5, 0x1122334455667788, values, buffers));
    EXPECT_EQ(ToHex(message.header + message.body), golden[f])
        << Name(formats[f]);
  }
}

TEST(Message, DifferencesAreThoseOfTheNaiveDecoder) {
  Rng rng(21);
  for (const core::MessageFormat format : AllFormats()) {
    for (const int64_t n : {1, 2, 255, 256, 257, 1000, 9000}) {
      for (const double rate : {1e-9, 0.1, 0.6, 1.0}) {
        const int64_t s = core::SentCoordinates(rate, n);
        SCOPED_TRACE(absl::StrCat(Name(format), " n ", n, " s ", s));
        const std::vector<float> values = NormalValues(n, 0.3f, rng.Next());
        std::vector<float> own = NormalValues(n, 0.3f, rng.Next());
        own[rng.Below(n)] = 1e30f;
        own[rng.Below(n)] = -7e4f;
        own[rng.Below(n)] = 1e-6f;
        own[rng.Below(n)] = 1e-41f;
        const std::vector<float> buffers = NormalValues(n % 5, 1, rng.Next());
        const Message message =
            EncodeWhole(Input(format, s, rng.Next(), values, buffers));
        const NaiveMessage naive(message.header, message.body);
        auto opened =
            OpenWhole(message, n, static_cast<int64_t>(buffers.size()));
        ASSERT_TRUE(opened.ok()) << opened.status();
        DecodedMessage& decoded = **opened;
        EXPECT_EQ(decoded.size(), n);
        EXPECT_EQ(decoded.carried(),
                  static_cast<int64_t>(naive.coordinates().size()));
        EXPECT_EQ(std::vector<float>(decoded.buffers().begin(),
                                     decoded.buffers().end()),
                  buffers);
        EXPECT_EQ(naive.buffers(), buffers);
        // Random ranges in random order, the whole and the empty one too.
        for (int round = 0; round < 12; ++round) {
          int64_t begin = static_cast<int64_t>(rng.Below(n + 1));
          int64_t end = static_cast<int64_t>(rng.Below(n + 1));
          if (begin > end) std::swap(begin, end);
          if (round == 0) begin = 0, end = n;
          if (round == 1) end = begin;
          core::CoordinateRange range;
          range.begin = begin;
          range.end = end;
          const auto length = static_cast<size_t>(range.size());
          std::vector<float> sum(length, 0.125f);
          std::vector<int32_t> counts(round % 2 == 0 ? length : 0, 3);
          decoded.AddDifference(
              range, absl::MakeConstSpan(own).subspan(begin, length), 0.5f,
              absl::MakeSpan(sum), absl::MakeSpan(counts));
          std::vector<float> expected(length, 0.125f);
          std::vector<int32_t> expected_counts(counts.size(), 3);
          for (size_t q = 0; q < naive.coordinates().size(); ++q) {
            const int64_t l = naive.coordinates()[q];
            if (l < begin || l >= end) continue;
            expected[l - begin] +=
                0.5f * static_cast<float>(naive.Difference(q, own[l]));
            if (!counts.empty()) expected_counts[l - begin] += 1;
          }
          EXPECT_EQ(counts, expected_counts);
          for (size_t i = 0; i < length; ++i) {
            ASSERT_EQ(sum[i], expected[i]) << "coordinate " << begin + i;
          }
        }
      }
    }
  }
}

TEST(Message, ChunksMayBeCutAnywhere) {
  const std::vector<float> values = NormalValues(1500, 1, 31);
  const std::vector<float> buffers = NormalValues(300, 1, 32);
  for (const core::MessageFormat format : AllFormats()) {
    SCOPED_TRACE(Name(format));
    const EncoderInput input = Input(format, 700, 33, values, buffers);
    const Message whole = EncodeWhole(input);
    for (const int64_t chunk : {1, 7, 255, 256, 1000, 1024, 4096}) {
      auto encoder = Encoder::Create(input);
      ASSERT_TRUE(encoder.ok()) << encoder.status();
      EXPECT_EQ((*encoder)->header_bytes(), whole.header);
      Assembler assembler((*encoder)->header());
      while (!(*encoder)->done()) {
        const int64_t offset = (*encoder)->position();
        const std::string bytes = (*encoder)->Next(chunk);
        ASSERT_LE(static_cast<int64_t>(bytes.size()), chunk);
        ASSERT_FALSE(bytes.empty());
        ASSERT_TRUE(assembler.Append(offset, bytes).ok());
      }
      EXPECT_TRUE(assembler.complete());
      EXPECT_EQ(assembler.Take(), whole.body);
      EXPECT_EQ((*encoder)->Next(5), "");
      EXPECT_EQ((*encoder)->total_bytes(),
                static_cast<int64_t>(whole.header.size() + whole.body.size()));
    }
  }
}

TEST(Assembler, TakesChunksInOrderAndNoMoreThanAnnounced) {
  const Message message =
      EncodeWhole(Input(AllFormats()[0], 0, 1, {1, 2, 3}, {}));
  const auto header = ParseHeader(message.header);
  ASSERT_TRUE(header.ok());
  Assembler assembler(*header);
  ASSERT_EQ(message.body.size(), 16);
  EXPECT_TRUE(assembler.Append(0, message.body.substr(0, 10)).ok());
  EXPECT_EQ(assembler.Append(0, "x").code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(assembler.Append(11, "x").code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(assembler.Append(-1, "x").code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(assembler.Append(10, std::string(7, 'x')).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(assembler.complete());
  EXPECT_EQ(assembler.received(), 10);
  EXPECT_TRUE(assembler.Append(10, message.body.substr(10)).ok());
  EXPECT_TRUE(assembler.complete());
  EXPECT_EQ(assembler.Append(16, "x").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(OpenMessage(BodyCheck(*header), assembler.Take()).ok());
}

TEST(Message, DenseGivesTheWholeModelAndOthersSayWhyNot) {
  const std::vector<float> values = NormalValues(3000, 1, 41);
  for (const core::MessageFormat format : AllFormats()) {
    SCOPED_TRACE(Name(format));
    const auto opened =
        OpenWhole(EncodeWhole(Input(format, 3000, 42, values, {})), 3000, 0);
    ASSERT_TRUE(opened.ok()) << opened.status();
    std::vector<float> out(3000, -9);
    const absl::Status status = (*opened)->CopyDense(absl::MakeSpan(out));
    if (format.coordinates != core::Coordinates::kDense) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(out, std::vector<float>(3000, -9));
      continue;
    }
    ASSERT_TRUE(status.ok()) << status;
    for (size_t l = 0; l < out.size(); ++l) {
      const double step = format.values == core::ValueType::kFp32   ? 0
                          : format.values == core::ValueType::kFp16 ? 0x1p-9
                          : format.values == core::ValueType::kBf16 ? 0x1p-6
                                                                    : 0.04;
      ASSERT_NEAR(out[l], values[l], step);
    }
  }
}

TEST(Encoder, NamesTheFirstValueThatCannotBeSent) {
  for (const core::MessageFormat format : AllFormats()) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> values(5000, 1.0f);
      values[4321] = bad;
      values[4500] = bad;
      auto encoder = Encoder::Create(Input(format, 10, 1, values, {}));
      ASSERT_TRUE(encoder.ok()) << encoder.status();
      while (!(*encoder)->done()) (void)(*encoder)->Next(1000);
      const absl::Status& status = (*encoder)->status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr("parameter 4321"));
      // What is there can never become a message, and nothing more comes.
      EXPECT_LT((*encoder)->position(), (*encoder)->header().body_bytes());
      EXPECT_EQ((*encoder)->Next(1000), "");
      values[4321] = values[4500] = 1;
      const auto buffer =
          Encoder::Create(Input(format, 10, 1, values, {0, bad}));
      EXPECT_THAT(std::string(buffer.status().message()),
                  HasSubstr("buffer entry 1"));
    }
    const std::vector<float> one = {1e38f};
    auto large = Encoder::Create(Input(format, 1, 1, one, {}));
    ASSERT_TRUE(large.ok()) << large.status();
    (void)(*large)->Next(1000);
    EXPECT_EQ((*large)->status().ok(), format.values != core::ValueType::kInt8);
  }
}

// Of a message with few values too, each of the model's is checked: before
// them, between and after.
TEST(Encoder, ChecksWhatIsNotSent) {
  const std::vector<float> good = NormalValues(5000, 1, 61);
  core::MessageFormat format;
  format.coordinates = core::Coordinates::kRandom;
  for (size_t l = 0; l < good.size(); l += 7) {
    std::vector<float> values = good;
    values[l] = NAN;
    auto encoder = Encoder::Create(Input(format, 300, 62, values, {}));
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    while (!(*encoder)->done()) (void)(*encoder)->Next(1000);
    EXPECT_THAT(std::string((*encoder)->status().message()),
                HasSubstr(absl::StrCat("parameter ", l, " is nan")));
  }
}

TEST(Encoder, RefusesSizesThatMakeNoSense) {
  for (const core::MessageFormat format : AllFormats()) {
    EXPECT_FALSE(Encoder::Create(Input(format, 1, 1, {}, {})).ok());
    if (format.coordinates == core::Coordinates::kDense) continue;
    for (const int64_t sent : {-1, 0, 4}) {
      const auto encoder =
          Encoder::Create(Input(format, sent, 1, {1, 2, 3}, {}));
      EXPECT_THAT(std::string(encoder.status().message()),
                  HasSubstr("allowed: 1 to 3"));
    }
    const std::vector<float> values = {1, 2, 3};
    const std::vector<float> reference = {1, 2};
    EncoderInput input = Input(format, 1, 1, values, {});
    input.reference = reference;
    EXPECT_FALSE(Encoder::Create(input).ok());
  }
}

// The reference is what the neighbour is known to hold, as it decoded it.
TEST(EdgeReference, FollowsWhatWasAcknowledged) {
  const std::vector<float> values = NormalValues(1000, 1, 51);
  for (const core::MessageFormat format : AllFormats()) {
    if (format.coordinates != core::Coordinates::kTopK) continue;
    SCOPED_TRACE(Name(format));
    EdgeReference reference(1000);
    std::vector<bool> covered(1000, false);
    for (uint64_t round = 0; round < 10; ++round) {
      EncoderInput input = Input(format, 100, round, values, {});
      input.reference = reference.values();
      input.keep_sent = true;
      auto encoder = Encoder::Create(input);
      ASSERT_TRUE(encoder.ok()) << encoder.status();
      Message message;
      message.header = (*encoder)->header_bytes();
      while (!(*encoder)->done()) message.body += (*encoder)->Next(100);
      const NaiveMessage naive(message.header, message.body);
      const SentValues sent = (*encoder)->TakeSent();
      ASSERT_EQ(sent.coordinates, naive.coordinates());
      for (size_t q = 0; q < sent.values.size(); ++q) {
        ASSERT_EQ(sent.values[q], static_cast<float>(naive.Value(q)));
      }
      if (round % 2 == 1) continue;  // lost
      reference.Commit(sent);
      for (const uint32_t l : sent.coordinates) covered[l] = true;
      for (size_t q = 0; q < sent.values.size(); ++q) {
        ASSERT_EQ(reference.values()[sent.coordinates[q]], sent.values[q]);
      }
    }
    // What has been sent closely need not be sent again: five messages of 100
    // that arrived cover 500 coordinates but for lossy leftovers.
    EXPECT_GE(std::count(covered.begin(), covered.end(), true), 450);
  }
}

}  // namespace
}  // namespace dfl::codec
