// A golden run of an algorithm that gives mass away, under way.
#ifndef DFL_TESTS_GOLDEN_MASS_RUN_H_
#define DFL_TESTS_GOLDEN_MASS_RUN_H_

#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

#include "daemon/core/rounds/mass_rounds.h"
#include "daemon/core/rounds/replica_rounds.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/golden_network.h"

namespace dfl::golden {

// The newest parcel that a node gave.
struct Given {
  FlatVector mass;
  bool increments = false;
  NodeId to;
};

// What is known of a node as its round begins.
struct Before {
  std::vector<float> x;
  FlatVector replica;
  double range = 0;  // of anq-nids
};

class MassRun : public GoldenNetwork {
 public:
  explicit MassRun(const Case& golden)
      : GoldenNetwork(golden), before(size()), given(size()) {}

  const core::MassRounds& rounds(size_t i) const {
    return dynamic_cast<const core::MassRounds&>(algorithm(i));
  }
  // Null: it keeps none.
  const core::ReplicaRounds* replicas(size_t i) const {
    return dynamic_cast<const core::ReplicaRounds*>(&algorithm(i));
  }

  // Of the present round.
  std::vector<Before> before;
  std::vector<std::optional<Given>> given;

 private:
  void OnAction(size_t i, const core::Action& action) override {
    GoldenNetwork::OnAction(i, action);
    if (const auto* give = std::get_if<core::Give>(&action)) {
      given[i] = Given{*give->mass, give->steps != nullptr, give->to};
    }
  }
};

}  // namespace dfl::golden

#endif  // DFL_TESTS_GOLDEN_MASS_RUN_H_
