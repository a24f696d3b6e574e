// "A message costs what its information costs": every byte of a whole answer,
// frames and checksum included, for the two models of the bar.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/codec/encoder.h"
#include "daemon/core/vector/message_format.h"
#include "daemon/exchange/proto_frames.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/transfers/transfers.h"
#include "gtest/gtest.h"

namespace dfl::exchange {
namespace {

using core::Coordinates;
using core::ValueType;

constexpr int64_t kBuffers = 1000;

int64_t BytesPerValue(ValueType values) {
  switch (values) {
    case ValueType::kFp32:
      return 4;
    case ValueType::kFp16:
    case ValueType::kBf16:
      return 2;
    case ValueType::kInt8:
      return 1;
    case ValueType::kMod:
    case ValueType::kModAnswer:
    case ValueType::kCodedSteps:
    case ValueType::kSteps:  // never of models
      return 0;
  }
  return 0;
}

// Every 16th value is ten times larger, the worst kind for no format.
std::vector<float> Values(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t l = 0; l < values.size(); ++l) {
    values[l] = static_cast<float>(l * 2654435761U % 1000003) *
                (l % 16 == 0 ? 1e-5F : 1e-6F);
  }
  return values;
}

struct Answer {
  int64_t bytes = 0;
  int64_t chunks = 0;
  int64_t coordinates = 0;  // s
};

// As Transfers sends it, with the longest numbers that a frame can have.
Answer Send(codec::Encoder& encoder) {
  Answer answer;
  answer.coordinates = encoder.header().s;
  ports::TransferBegin begin;
  begin.transfer = begin.ask = ~uint64_t{0};
  begin.kind = ports::TransferKind::kAnswer;
  begin.step = int64_t{1} << 53;
  begin.header = encoder.header_bytes();
  begin.body_bytes = encoder.header().body_bytes();
  pb::ControlRequest announced;
  ToProto(std::move(begin), announced.mutable_frame());
  answer.bytes += static_cast<int64_t>(announced.ByteSizeLong());
  int64_t offset = 0;
  while (!encoder.done()) {
    ports::Chunk chunk;
    chunk.transfer = ~uint64_t{0};
    chunk.offset = offset;
    chunk.data = encoder.Next(runtime::TransfersOptions().chunk_bytes);
    offset += static_cast<int64_t>(chunk.data.size());
    pb::BulkRequest carried;
    ToProto(std::move(chunk), carried.mutable_chunk());
    answer.bytes += static_cast<int64_t>(carried.ByteSizeLong());
    ++answer.chunks;
  }
  return answer;
}

TEST(AnswerSize, StaysWithinTheBarInEveryFormat) {
  for (const int64_t n : {268362, 11170000}) {
    const std::vector<float> values = Values(n);
    const std::vector<float> buffers(kBuffers, 0.5F);
    for (const Coordinates coordinates :
         {Coordinates::kDense, Coordinates::kRandom, Coordinates::kTopK}) {
      for (const ValueType type : {ValueType::kFp32, ValueType::kFp16,
                                   ValueType::kBf16, ValueType::kInt8}) {
        codec::EncoderInput input;
        input.format = {coordinates, type};
        input.sent = coordinates == Coordinates::kDense
                         ? n
                         : core::SentCoordinates(0.1, n);
        input.seed = 71;
        input.values = values;
        input.buffers = buffers;
        auto encoder = codec::Encoder::Create(input);
        ASSERT_TRUE(encoder.ok()) << encoder.status();
        const Answer answer = Send(**encoder);
        const int64_t s = answer.coordinates;
        int64_t allowed =
            s * BytesPerValue(type) + 256 + 32 * answer.chunks + 4 * kBuffers;
        if (type == ValueType::kInt8) allowed += 4 * ((s + 255) / 256);
        if (coordinates == Coordinates::kTopK) allowed += 2 * s;
        EXPECT_LE(answer.bytes, allowed)
            << core::ToString(coordinates) << " " << core::ToString(type)
            << " n " << n << " s " << s;
      }
    }
  }
}

}  // namespace
}  // namespace dfl::exchange
