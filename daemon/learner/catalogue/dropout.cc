#include "daemon/learner/catalogue/dropout.h"

#include "daemon/base/rng.h"

namespace dfl::learner {

uint64_t DropoutSeed(uint64_t data_seed, int64_t step) {
  return DeriveSeed(data_seed, "dropout", static_cast<uint64_t>(step));
}

void FillDropoutMask(uint64_t dropout_seed, int64_t layer, double probability,
                     absl::Span<float> mask) {
  const uint64_t dropped = static_cast<uint64_t>(probability * 0x1.0p32);
  const float kept = static_cast<float>(1 / (1 - probability));
  Rng rng(DeriveSeed(dropout_seed, "layer", static_cast<uint64_t>(layer)));
  size_t i = 0;
  for (; i + 1 < mask.size(); i += 2) {
    const uint64_t bits = rng.Next();
    mask[i] = (bits >> 32) < dropped ? 0.0F : kept;
    mask[i + 1] = (bits & 0xFFFFFFFFU) < dropped ? 0.0F : kept;
  }
  if (i < mask.size()) mask[i] = (rng.Next() >> 32) < dropped ? 0.0F : kept;
}

}  // namespace dfl::learner
