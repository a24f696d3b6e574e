#include "daemon/core/rounds/compressed_rounds.h"

#include <utility>

#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

CompressedRounds::Settings::Settings(const Knobs& knobs)
    : eta(knobs.Number("eta")),
      gamma(knobs.Number("gamma")),
      compression(CompressionOf(knobs)) {}

CompressedRounds::CompressedRounds(AlgorithmContext context,
                                   Decisions& decisions, int64_t vectors,
                                   bool conserves)
    : ReplicaRounds(std::move(context), vectors, conserves),
      settings_(plan().knobs),
      decisions_(decisions) {}

void CompressedRounds::Compress(int64_t q, absl::string_view purpose,
                                absl::Span<const float> values) {
  if (settings_.compression.kind == Compression::Kind::kSign) {
    SignOwn(q, values);
    return;
  }
  FlatVector difference(values.begin(), values.end());
  AddScaled(-1.0F, Part(replica(), q), absl::MakeSpan(difference));
  SetOwn(q,
         CompressedCoordinates(settings_.compression, difference, purpose,
                               decisions_),
         values);
}

AlgorithmInfo CompressedInfo(int64_t vectors) {
  return {
      .caveats =
          "codec.coordinates must be dense, because the knob `compressor` "
          "decides what is sent. Module buffers (batch normalisation) are not "
          "exchanged: every node keeps its own.",
      .exchange = Exchange::kPush,
      .lock_step = true,
      .dense_only = true,
      .why_dense = "its knob compressor decides what of a difference is sent",
      .gives_mass = true,
      .exact_mass =
          "it sends differences, which its own knobs compress already",
      .keeps_replicas = true,
      .edge = ReplicaCost(vectors),
      .knobs = Joined(
          {PositiveKnob("eta", 0.01, "Step size."),
           {.name = "gamma",
            .default_value = 0.2,
            .min = 0,
            .max = 1,
            .min_open = true,
            .help =
                "Consensus step size: how far a round moves towards the "
                "neighbours' replicas. Too large a value for the compressor "
                "diverges; the less is sent, the smaller it must be."}},
          CompressorKnobs())};
}

}  // namespace dfl::core
