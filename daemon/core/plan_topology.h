// The graph and the weights that a plan means: the same on every node, in every
// tool. The one place that knows which seed a graph is drawn from.
#ifndef DFL_CORE_PLAN_TOPOLOGY_H_
#define DFL_CORE_PLAN_TOPOLOGY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "daemon/base/ids.h"
#include "daemon/core/graph.h"
#include "daemon/core/mixing.h"
#include "daemon/core/run_plan.h"

namespace dfl::core {

// The members' names, in the plan's order.
std::vector<NodeId> MemberIds(const RunPlan& plan);

// Errors: as BuildGraph.
absl::StatusOr<Graph> PlanGraph(const RunPlan& plan);

// Row i and node i belong to members[i].
struct PlanTopology {
  std::vector<NodeId> members;
  Graph graph{0};
  MixingMatrix weights;
};

// All of it. m^2 memory: a node that wants its own row only takes
// DeriveNodePlan.
// Errors: as BuildGraph and BuildMixing.
absl::StatusOr<PlanTopology> DeriveTopology(const RunPlan& plan);

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_TOPOLOGY_H_
