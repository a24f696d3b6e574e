#include "daemon/core/plan_topology.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"

namespace dfl::core {
namespace {

constexpr int kGraphsLookedAt = 64;

uint64_t TopologySeed(const RunPlan& plan) {
  return DeriveSeed(plan.seed, "topology");
}

}  // namespace

std::vector<NodeId> MemberIds(const RunPlan& plan) {
  std::vector<NodeId> ids;
  ids.reserve(plan.members.size());
  for (const MemberSpec& member : plan.members) ids.push_back(member.node);
  return ids;
}

absl::StatusOr<AnyGraph> PlanGraph(const RunPlan& plan, int64_t round) {
  return BuildTopology(plan.topology, TopologySeed(plan), MemberIds(plan),
                       round);
}

absl::StatusOr<AnyGraph> PlanWindow(const RunPlan& plan) {
  return BuildWindow(plan.topology, TopologySeed(plan), MemberIds(plan));
}

absl::StatusOr<PlanTopology> DeriveTopology(const RunPlan& plan,
                                            int64_t round) {
  PlanTopology out;
  out.members = MemberIds(plan);
  DFL_ASSIGN_OR_RETURN(AnyGraph graph, PlanGraph(plan, round));
  if (Digraph* directed = std::get_if<Digraph>(&graph)) {
    out.directed = true;
    out.digraph = std::move(*directed);
    out.directed_weights = BuildDirectedWeights(out.digraph);
    return out;
  }
  out.graph = std::get<Graph>(std::move(graph));
  DFL_ASSIGN_OR_RETURN(
      out.weights,
      BuildMixing(plan.topology.weights, out.graph, plan.topology.matrix));
  return out;
}

double SpectralGap(const PlanTopology& topology) {
  if (!topology.directed) return SpectralGap(topology.weights);
  return 1 - std::max(SecondLargestModulus(topology.directed_weights.a),
                      SecondLargestModulus(topology.directed_weights.b));
}

bool MeetWithin(const RunPlan& plan, const NodeId& a, const NodeId& b,
                int64_t from, int64_t to) {
  const std::vector<NodeId> members = MemberIds(plan);
  const auto place = [&members](const NodeId& node) {
    const auto at = std::lower_bound(members.begin(), members.end(), node);
    return at != members.end() && *at == node ? at - members.begin() : -1;
  };
  const int64_t i = place(a);
  const int64_t j = place(b);
  if (i < 0 || j < 0) return false;
  int64_t round = from;
  for (int looked = 0; round < to; ++looked) {
    if (looked == kGraphsLookedAt) return true;
    const absl::StatusOr<AnyGraph> graph =
        BuildTopology(plan.topology, TopologySeed(plan), members, round);
    if (!graph.ok()) return false;
    const Graph* undirected = std::get_if<Graph>(&*graph);
    const bool meet = undirected != nullptr
                          ? undirected->HasEdge(i, j)
                          : std::get<Digraph>(*graph).HasArc(i, j) ||
                                std::get<Digraph>(*graph).HasArc(j, i);
    if (meet) return true;
    if (!TopologyVaries(plan.topology)) return false;
    round = NextGraphRound(plan.topology, round);
  }
  return false;
}

}  // namespace dfl::core
