// Replica rounds in which a compressor chooses what is sent of a difference:
// what CHOCO-SGD and BEER have in common.
#ifndef DFL_CORE_ROUNDS_COMPRESSED_ROUNDS_H_
#define DFL_CORE_ROUNDS_COMPRESSED_ROUNDS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/compressor.h"
#include "daemon/core/rounds/replica_rounds.h"

namespace dfl::core {

class CompressedRounds : public ReplicaRounds {
 protected:
  // As ReplicaRounds; `decisions` must outlive it.
  CompressedRounds(AlgorithmContext context, Decisions& decisions,
                   int64_t vectors, bool conserves);

  // Moves the q-th vector of the own replica towards `values` [n] by C(values -
  // vector).
  void Compress(int64_t q, absl::string_view purpose,
                absl::Span<const float> values);

  // The consensus step size.
  double gamma() const { return settings_.gamma; }
  double StepSize() const final { return settings_.eta; }

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double eta;
    double gamma;
    Compression compression;
  };

  void OnPlanChanged() final { settings_ = Settings(plan().knobs); }

  Settings settings_;
  Decisions& decisions_;
};

// What the catalogue entries of such algorithms have in common: knobs, what a
// plan must offer, caveats. `vectors` is the number of vectors in a replica.
AlgorithmInfo CompressedInfo(int64_t vectors);

}  // namespace dfl::core

#endif  // DFL_CORE_ROUNDS_COMPRESSED_ROUNDS_H_
