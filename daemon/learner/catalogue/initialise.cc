#include "daemon/learner/catalogue/initialise.h"

#include <algorithm>
#include <cmath>

#include "daemon/base/check.h"
#include "daemon/base/rng.h"

namespace dfl::learner {

void FillTensors(uint64_t seed, absl::Span<const ports::TensorInfo> tensors,
                 absl::Span<const InitRule> rules, absl::Span<float> flat) {
  DFL_CHECK(tensors.size() == rules.size());
  const Rng root = Rng(seed).Fork("initialise");
  for (size_t i = 0; i < tensors.size(); ++i) {
    const absl::Span<float> values =
        flat.subspan(static_cast<size_t>(tensors[i].offset),
                     static_cast<size_t>(tensors[i].size));
    if (rules[i].kind == InitRule::Kind::kConstant) {
      std::fill(values.begin(), values.end(), rules[i].value);
      continue;
    }
    const double bound = std::sqrt(3 * rules[i].variance);
    Rng rng = root.Fork(tensors[i].name);
    for (float& value : values) {
      value = static_cast<float>((2 * rng.Uniform() - 1) * bound);
    }
  }
}

}  // namespace dfl::learner
