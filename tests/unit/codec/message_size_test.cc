// "A message costs what its information costs", for the two models of the bar.
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/codec/encoder.h"
#include "gtest/gtest.h"
#include "tests/unit/codec/naive_codec.h"

namespace dfl::codec {
namespace {

// Of the 256 bytes that an answer may have besides, the transport gets these.
constexpr int64_t kTransportBytes = 150;

TEST(MessageSize, StaysWithinTheBarInEveryFormat) {
  for (const int64_t n : {268362, 11170000}) {
    // Every 16th value is ten times larger, the worst kind for no format.
    std::vector<float> values(static_cast<size_t>(n));
    for (size_t l = 0; l < values.size(); ++l) {
      values[l] = static_cast<float>(l * 2654435761u % 1000003) *
                  (l % 16 == 0 ? 1e-5f : 1e-6f);
    }
    const std::vector<float> buffers(1000, 0.5f);
    for (const core::MessageFormat format : AllFormats()) {
      for (const double rate : {0.001, 0.1}) {
        EncoderInput input;
        input.format = format;
        input.sent = core::SentCoordinates(rate, n);
        input.seed = 71;
        input.values = values;
        input.buffers = buffers;
        const auto encoder = Encoder::Create(input);
        ASSERT_TRUE(encoder.ok()) << encoder.status();
        const int64_t s = (*encoder)->header().s;
        int64_t per_value = 4;
        int64_t allowed = 256 - kTransportBytes + 4 * 1000;
        if (format.values == core::ValueType::kFp16 ||
            format.values == core::ValueType::kBf16) {
          per_value = 2;
        }
        if (format.values == core::ValueType::kInt8) {
          per_value = 1;
          allowed += 4 * ((s + 255) / 256);
        }
        if (format.coordinates == core::Coordinates::kTopK) allowed += 2 * s;
        allowed += per_value * s;
        EXPECT_LE((*encoder)->total_bytes(), allowed)
            << Name(format) << " n " << n << " s " << s;
      }
    }
  }
}

TEST(MessageSize, IsWhatComesOut) {
  const std::vector<float> values = NormalValues(10000, 1, 72);
  const std::vector<float> buffers(11, 0.5f);
  for (const core::MessageFormat format : AllFormats()) {
    EncoderInput input;
    input.format = format;
    input.sent = 777;
    input.seed = 73;
    input.values = values;
    input.buffers = buffers;
    auto encoder = Encoder::Create(input);
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    const int64_t announced = (*encoder)->total_bytes();
    auto total = static_cast<int64_t>((*encoder)->header_bytes().size());
    while (!(*encoder)->done()) {
      total += static_cast<int64_t>((*encoder)->Next(1000).size());
    }
    EXPECT_EQ(total, announced) << Name(format);
  }
}

}  // namespace
}  // namespace dfl::codec
