#include "daemon/core/plan_topology.h"

#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"

namespace dfl::core {

std::vector<NodeId> MemberIds(const RunPlan& plan) {
  std::vector<NodeId> ids;
  ids.reserve(plan.members.size());
  for (const MemberSpec& member : plan.members) ids.push_back(member.node);
  return ids;
}

absl::StatusOr<Graph> PlanGraph(const RunPlan& plan) {
  return BuildGraph(plan.topology, DeriveSeed(plan.seed, "topology"),
                    MemberIds(plan));
}

absl::StatusOr<PlanTopology> DeriveTopology(const RunPlan& plan) {
  PlanTopology out;
  out.members = MemberIds(plan);
  DFL_ASSIGN_OR_RETURN(out.graph, PlanGraph(plan));
  DFL_ASSIGN_OR_RETURN(
      out.weights,
      BuildMixing(plan.topology.weights, out.graph, plan.topology.matrix));
  return out;
}

}  // namespace dfl::core
