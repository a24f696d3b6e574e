// A golden run of an algorithm that gives mass away, under way.
#ifndef DFL_TESTS_GOLDEN_MASS_RUN_H_
#define DFL_TESTS_GOLDEN_MASS_RUN_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
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

// A run and the gradients that are still to be computed.
struct MassRun {
  const Case& golden;
  std::vector<std::unique_ptr<simports::Problem>> problems;
  std::vector<std::unique_ptr<GoldenNode>> nodes;
  std::vector<std::deque<std::vector<int64_t>>> batches;
  // Of the present round.
  std::vector<Before> before;
  std::vector<std::optional<Given>> given;

  core::MassRounds& rounds(size_t i) {
    return dynamic_cast<core::MassRounds&>(nodes[i]->algorithm());
  }
  // Null: it keeps none.
  core::ReplicaRounds* replicas(size_t i) {
    return dynamic_cast<core::ReplicaRounds*>(&nodes[i]->algorithm());
  }
};

}  // namespace dfl::golden

#endif  // DFL_TESTS_GOLDEN_MASS_RUN_H_
