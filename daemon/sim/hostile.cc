#include "daemon/sim/hostile.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/distributions.h"
#include "daemon/base/rng.h"

namespace dfl::sim {
namespace {

using runtime::Snapshot;
using runtime::SnapshotPtr;

constexpr float kHugeValue = 1e30F;
constexpr double kScaleFactor = 10;

constexpr std::pair<Attack, absl::string_view> kNames[] = {
    {Attack::kSignFlip, "sign-flip"}, {Attack::kScale, "scale"},
    {Attack::kHuge, "huge"},          {Attack::kNoise, "noise"},
    {Attack::kStale, "stale"},        {Attack::kLabels, "labels"}};

// Calls `change(values)` for parameters and buffers of a copy.
template <typename Change>
SnapshotPtr Changed(const Snapshot& snapshot, Change change) {
  auto copy = std::make_shared<Snapshot>(snapshot);
  change(copy->parameters);
  change(copy->buffers);
  return copy;
}

runtime::Forge Scaled(double factor) {
  return [factor](const SnapshotPtr& snapshot) {
    return Changed(*snapshot, [factor](FlatVector& values) {
      for (float& value : values) {
        value = static_cast<float>(factor * static_cast<double>(value));
      }
    });
  };
}

runtime::Forge Noisy(double factor, uint64_t seed) {
  const auto rng = std::make_shared<Rng>(seed);
  return [factor, rng](const SnapshotPtr& snapshot) {
    return Changed(*snapshot, [&](FlatVector& values) {
      double squares = 0;
      for (const float value : values) {
        squares += static_cast<double>(value) * value;
      }
      const double deviation =
          factor * std::sqrt(squares / std::max<double>(1, values.size()));
      for (float& value : values) {
        value += static_cast<float>(deviation * Normal(*rng));
      }
    });
  };
}

}  // namespace

bool HostileSpec::Has(int64_t place) const {
  return std::binary_search(nodes.begin(), nodes.end(), place);
}

absl::string_view AttackName(Attack attack) {
  for (const auto& [value, name] : kNames) {
    if (value == attack) return name;
  }
  return "";
}

std::optional<Attack> ParseAttack(absl::string_view text) {
  for (const auto& [value, name] : kNames) {
    if (text == name) return value;
  }
  return std::nullopt;
}

std::string AttackNames() {
  std::string names;
  for (const auto& [value, name] : kNames) {
    const bool last = value == std::rbegin(kNames)->first;
    absl::StrAppend(&names, names.empty() ? "" : last ? " or " : ", ", name);
  }
  return names;
}

runtime::Forge MakeForge(const HostileSpec& spec, uint64_t seed) {
  switch (spec.attack) {
    case Attack::kSignFlip:
      return Scaled(-spec.factor.value_or(1));
    case Attack::kScale:
      return Scaled(spec.factor.value_or(kScaleFactor));
    case Attack::kHuge:
      return [](const SnapshotPtr& snapshot) {
        return Changed(*snapshot, [](FlatVector& values) {
          std::fill(values.begin(), values.end(), kHugeValue);
        });
      };
    case Attack::kNoise:
      return Noisy(spec.factor.value_or(1), seed);
    case Attack::kStale:
      return [first = SnapshotPtr()](const SnapshotPtr& snapshot) mutable {
        if (first == nullptr) first = snapshot;
        return first;
      };
    case Attack::kLabels:
      return nullptr;
  }
  return nullptr;
}

}  // namespace dfl::sim
