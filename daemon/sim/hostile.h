// Members that do not keep to the algorithm (`network.hostile`): all take part
// in the run as others do, and what their neighbours get of them is another
// model, or one that learnt something else.
//
//   hostile: {nodes: [n06, n07], attack: sign-flip, factor: 1}
#ifndef DFL_SIM_HOSTILE_H_
#define DFL_SIM_HOSTILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/runtime/own_state.h"

namespace dfl::sim {

enum class Attack {
  kSignFlip,  // -factor w
  kScale,     // factor w
  kHuge,      // 1e30 everywhere
  kNoise,     // w + N(0, s^2), s = factor times the root mean square of w
  kStale,     // the first model it sent, in every message
  kLabels,    // w of a learner whose labels y are classes - 1 - y
};

struct HostileSpec {
  Attack attack = Attack::kSignFlip;
  // nullopt: 10 for kScale, else 1.
  std::optional<double> factor;
  // By place, sorted; empty: nobody.
  std::vector<int64_t> nodes;

  bool Has(int64_t place) const;
};

// As written in a scenario.
absl::string_view AttackName(Attack attack);
std::optional<Attack> ParseAttack(absl::string_view text);
std::string AttackNames();  // "sign-flip, scale, ... or labels"

// What a member sends in place of its models; null for kLabels. `seed` differs
// between members.
runtime::Forge MakeForge(const HostileSpec& spec, uint64_t seed);

}  // namespace dfl::sim

#endif  // DFL_SIM_HOSTILE_H_
