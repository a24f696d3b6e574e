#include "daemon/core/rounds/compressor.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "daemon/core/vector/message_format.h"

namespace dfl::core {
namespace {

// Orders as |value| does, and what is not a number as well.
uint32_t Magnitude(float value) {
  return std::bit_cast<uint32_t>(value) & 0x7FFFFFFFU;
}

}  // namespace

std::vector<KnobSpec> CompressorKnobs() {
  KnobSpec compressor;
  compressor.name = "compressor";
  compressor.type = KnobType::kText;
  compressor.default_value = std::string("topk");
  compressor.choices = {"topk", "mask", "sign"};
  compressor.help =
      "What of a difference is sent: its largest coordinates (topk), random "
      "ones (mask), or the signs of all, with the mean magnitude of each 256 "
      "(sign).";
  KnobSpec rate;
  rate.name = "rate";
  rate.default_value = 0.1;
  rate.min = 0;
  rate.min_open = true;
  rate.max = 1;
  rate.noun = KnobNoun::kParticipation;
  rate.help =
      "Share of coordinates that topk and mask send, k/n; 1: all. Of sign it "
      "is "
      "always all.";
  return {compressor, rate};
}

Compression CompressionOf(const Knobs& knobs) {
  const std::string& name = knobs.Text("compressor");
  Compression compression;
  if (name == "mask") compression.kind = Compression::Kind::kMask;
  if (name == "sign") compression.kind = Compression::Kind::kSign;
  compression.rate = knobs.Number("rate");
  return compression;
}

std::vector<int64_t> CompressedCoordinates(const Compression& compression,
                                           absl::Span<const float> v,
                                           absl::string_view purpose,
                                           Decisions& decisions) {
  const auto n = static_cast<int64_t>(v.size());
  const int64_t count = SentCoordinates(compression.rate, n);
  if (compression.kind == Compression::Kind::kMask) {
    return decisions.ChooseCoordinates(purpose, n, count);
  }
  std::vector<int64_t> chosen(v.size());
  std::iota(chosen.begin(), chosen.end(), int64_t{0});
  if (count < n) {
    std::nth_element(chosen.begin(), chosen.begin() + count, chosen.end(),
                     [v](int64_t a, int64_t b) {
                       const uint32_t of_a = Magnitude(v[a]);
                       const uint32_t of_b = Magnitude(v[b]);
                       return of_a != of_b ? of_a > of_b : a < b;
                     });
    chosen.resize(count);
    std::sort(chosen.begin(), chosen.end());
  }
  return chosen;
}

}  // namespace dfl::core
