// What an encoder announces as its size. A whole answer, frames included:
// tests/unit/exchange/answer_size_test.cc.
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/codec/encoder.h"
#include "gtest/gtest.h"
#include "tests/unit/codec/naive_codec.h"

namespace dfl::codec {
namespace {

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
