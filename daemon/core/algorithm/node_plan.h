// What one node needs to know of a run plan to run its algorithm: everything
// that topology, weights and overrides resolve to. plan/derived_plan.h derives
// it.
#ifndef DFL_CORE_ALGORITHM_NODE_PLAN_H_
#define DFL_CORE_ALGORITHM_NODE_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/check.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/algorithm/optimizer_spec.h"
#include "daemon/core/vector/aggregation.h"

namespace dfl::core {

// A neighbour of a node and the weight that goes with it.
struct Neighbour {
  NodeId node;
  double weight = 0;

  friend bool operator==(const Neighbour& a, const Neighbour& b) {
    return a.node == b.node && a.weight == b.weight;
  }
};

// What one node needs to know of the plan to run its algorithm: everything
// that a topology, weights and overrides resolve to.
struct NodePlan {
  NodeId self;
  // The seed of the run, the same on every node.
  uint64_t seed = 0;
  Knobs knobs;
  // Whom the node exchanges with, sorted by name, without self. Undirected: its
  // neighbours with W_ij. Directed: all that it hears or sends to, with a_ij (0
  // for one that it only sends to).
  std::vector<Neighbour> neighbours;
  double self_weight = 1;  // W_ii, or a_ii
  // For algorithms on directed graphs, where an undirected edge is two arcs:
  // whom the node hears, with a_ij, and whom it sends to, with b_ji; both
  // sorted by name. Their own entries are receiver_weight = a_ii and
  // sender_weight = b_ii. [Spod-GT] Alg. 1 line 5
  std::vector<Neighbour> in_neighbours;
  std::vector<Neighbour> out_neighbours;
  double receiver_weight = 1;
  double sender_weight = 1;
  int64_t member_count = 1;
  // False: self is no member. It has no neighbours and trains nothing; it may
  // answer those who ask.
  bool takes_part = true;
  // False: self mixes without data (Participation::kMix): it takes no gradient.
  bool trains = true;
  int64_t place = 0;  // of self among the members
  // rows_i members / (sum of rows), 1 when rows are not told. [DeceFL] eq. (1)
  double sample_weight = 1;
  bool rows_known = false;
  // The entry of the plan's algorithm, which outlives the plan, and what that
  // algorithm wants to know beyond the above. Null: a plan made by hand; an
  // algorithm that wants nothing.
  const AlgorithmInfo* algorithm = nullptr;
  std::shared_ptr<const AlgorithmFacts> facts;
  // What local steps do with gradients, where the algorithm leaves it open.
  OptimizerSpec optimizer;
  // How models are mixed, where the algorithm mixes models
  // (AlgorithmInfo::mixes_models).
  AggregationSpec aggregation;
  absl::Duration exchange_deadline = absl::Seconds(2);
};

// The facts of `plan`, which are `Facts` or none; where there are none, what a
// default `Facts` says.
template <typename Facts>
const Facts& FactsOf(const NodePlan& plan) {
  static const Facts* const kNone = new Facts;
  if (plan.facts == nullptr) return *kNone;
  const auto* facts = dynamic_cast<const Facts*>(plan.facts.get());
  DFL_CHECK(facts != nullptr);
  return *facts;
}

// Whether both have the same neighbours and weights.
bool SameNeighbours(const NodePlan& a, const NodePlan& b);

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHM_NODE_PLAN_H_
