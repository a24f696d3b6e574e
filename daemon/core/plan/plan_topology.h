// The graph and the weights that a plan means: the same on every node, in every
// tool. The one place that knows which seed a graph is drawn from.
#ifndef DFL_CORE_PLAN_PLAN_TOPOLOGY_H_
#define DFL_CORE_PLAN_PLAN_TOPOLOGY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/graph/graph.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::core {

// The members' names, in the plan's order.
std::vector<NodeId> MemberIds(const RunPlan& plan);

// The place of `node` among the members; none: it is no member. `plan` has
// passed CheckPlan.
std::optional<int64_t> PlaceOf(const RunPlan& plan, const NodeId& node);

// The kind of the topology; what auto means for the plan's algorithm and its
// present members.
std::string KindInForce(const RunPlan& plan);

// The graph of a round. A plan that follows the network has no edges to members
// that are not there. Two members that cannot be dialled are not linked where
// kind and algorithm leave a choice (BuildTopology).
// Errors: as BuildTopology.
absl::StatusOr<AnyGraph> PlanGraph(const RunPlan& plan, int64_t round = 0);

// All edges of the rounds of a window.
// Errors: as BuildWindow.
absl::StatusOr<AnyGraph> PlanWindow(const RunPlan& plan);

// Row i and node i belong to members[i].
struct PlanTopology {
  std::vector<NodeId> members;
  bool directed = false;
  // Undirected: the graph and W; empty otherwise.
  Graph graph{0};
  MixingMatrix weights;
  // Directed: the graph, A and B; empty otherwise.
  Digraph digraph{0};
  DirectedWeights directed_weights;
};

// All of it, as it is in a round. m^2 memory: a node that wants its own row
// only takes DeriveNodePlan.
// Errors: as BuildTopology and BuildMixing.
absl::StatusOr<PlanTopology> DeriveTopology(const RunPlan& plan,
                                            int64_t round = 0);

// The same with the graph of the round, which PlanGraph has given.
// Errors: as BuildMixing.
absl::StatusOr<PlanTopology> DeriveTopology(const RunPlan& plan,
                                            AnyGraph graph);

// 1 - lambda of W; directed: the smaller of A's and B's 1 - |lambda_2|. 0
// without members.
double SpectralGap(const PlanTopology& topology);

// The same of round 0, for those who did not ask for it by itself: 0 with more
// than 256 members, or 128 where edges run one way, for then it takes long.
// `plan` has passed CheckPlan.
double SpectralGapIfSmall(const RunPlan& plan);

// How many members are neighbours of member `place` in one round or another:
// that it hears, and that it sends to. A graph that is drawn again and again
// counts as everybody once 64 of them were looked at, or kMostEdges. What comes
// after the last iteration that the stop rule allows does not count. `plan` has
// passed CheckPlan, `algorithm` is its entry, `first` its graph of iteration 0.
// Errors: as BuildTopology.
struct NeighbourCount {
  int64_t heard = 0;
  int64_t sent_to = 0;
};
absl::StatusOr<NeighbourCount> CountNeighbours(const RunPlan& plan,
                                               const AlgorithmInfo& algorithm,
                                               const AnyGraph& first,
                                               int64_t place);

// Whether members `a` and `b` have an edge, either way, in one of the rounds
// from <= r < to. Looks at 64 graphs at the most, and kMostEdges; with more it
// is taken for granted. `plan` has passed CheckPlan.
bool MeetWithin(const RunPlan& plan, const NodeId& a, const NodeId& b,
                int64_t from, int64_t to);

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_PLAN_TOPOLOGY_H_
