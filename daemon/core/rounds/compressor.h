// Compressors: what of a difference is sent. C(v) is v at `count` of n
// coordinates and 0 elsewhere, or its signs with a scale (step_codes.h). What C
// leaves out stays in the difference to the replica that receivers keep, and is
// sent later: error feedback.
#ifndef DFL_CORE_ROUNDS_COMPRESSOR_H_
#define DFL_CORE_ROUNDS_COMPRESSOR_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/knobs.h"

namespace dfl::core {

// The knobs `compressor` and `rate`, as every algorithm that compresses
// declares them.
std::vector<KnobSpec> CompressorKnobs();

struct Compression {
  enum class Kind { kTopK, kMask, kSign };

  Kind kind = Kind::kTopK;
  double rate = 0.1;
};

// What those knobs say.
Compression CompressionOf(const Knobs& knobs);

// The coordinates of C(v), in increasing order, SentCoordinates(rate, n) of
// them; not for kSign, which sends all:
//   topk  the largest |v[l]|; of equals the lower l
//   mask  uniformly at random, by decisions.ChooseCoordinates(purpose)
// Cost: O(n) time, 8 n bytes for topk.
std::vector<int64_t> CompressedCoordinates(const Compression& compression,
                                           absl::Span<const float> v,
                                           absl::string_view purpose,
                                           Decisions& decisions);

}  // namespace dfl::core

#endif  // DFL_CORE_ROUNDS_COMPRESSOR_H_
