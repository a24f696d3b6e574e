#include "daemon/codec/mass_codec.h"

#include <vector>

#include "daemon/base/rng.h"
#include "daemon/codec/encoder.h"

namespace dfl::codec {
namespace {

constexpr int64_t kPieceBytes = 64 << 10;

}  // namespace

std::optional<core::MassCode::Written> MassCodec::Write(
    const NodeId& to, uint64_t sequence, absl::Span<const float> mass) const {
  if (values_ == core::ValueType::kFp32) return std::nullopt;
  Written written;
  written.format.values = values_;
  written.seed = DeriveSeed(seed_, to.name(), sequence);
  EncoderInput input;
  input.format = written.format;
  input.seed = written.seed;
  input.values = mass;
  input.keep_sent = true;
  const auto encoder = Encoder::Create(input);
  if (!encoder.ok()) return std::nullopt;
  std::vector<char> piece(kPieceBytes);
  while (!(*encoder)->done()) (void)(*encoder)->Next(absl::MakeSpan(piece));
  // Not finite: let it be refused where it is sent.
  if (!(*encoder)->status().ok()) return std::nullopt;
  const SentValues sent = (*encoder)->TakeSent();
  written.carried.assign(sent.values.begin(), sent.values.end());
  return written;
}

}  // namespace dfl::codec
