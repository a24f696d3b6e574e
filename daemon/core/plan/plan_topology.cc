#include "daemon/core/plan/plan_topology.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/participants.h"

namespace dfl::core {
namespace {

constexpr int kGraphsLookedAt = 64;

uint64_t TopologySeed(const RunPlan& plan) {
  return DeriveSeed(plan.seed, "topology");
}

// Whether the plan's algorithm exchanges with every member, whatever it costs.
bool NeedsAllEdges(const RunPlan& plan) {
  const absl::StatusOr<const AlgorithmInfo*> algorithm =
      BuiltInCatalogue().Find(plan.algorithm.name);
  return algorithm.ok() && (*algorithm)->complete_graph;
}

// Those that the graph should not link with each other.
std::vector<NodeId> UndialableOf(const RunPlan& plan) {
  std::vector<NodeId> ids;
  if (NeedsAllEdges(plan)) return ids;
  for (const MemberSpec& member : plan.members) {
    if (!member.dialable) ids.push_back(member.node);
  }
  return ids;
}

// The topology among the members. A plan that follows the view may name edges
// of members that are not there.
TopologySpec AmongMembers(const RunPlan& plan) {
  TopologySpec spec = plan.topology;
  spec.kind = KindInForce(plan);
  if (!FollowsView(plan)) return spec;
  const auto absent = [&plan](const std::pair<NodeId, NodeId>& edge) {
    return !PlaceOf(plan, edge.first) || !PlaceOf(plan, edge.second);
  };
  const auto drop = [&absent](EdgeList& edges) {
    edges.erase(std::remove_if(edges.begin(), edges.end(), absent),
                edges.end());
  };
  drop(spec.edges);
  for (EdgeList& edges : spec.edge_sets) drop(edges);
  return spec;
}

}  // namespace

std::vector<NodeId> MemberIds(const RunPlan& plan) {
  std::vector<NodeId> ids;
  ids.reserve(plan.members.size());
  for (const MemberSpec& member : plan.members) ids.push_back(member.node);
  return ids;
}

std::optional<int64_t> PlaceOf(const RunPlan& plan, const NodeId& node) {
  const auto at =
      std::lower_bound(plan.members.begin(), plan.members.end(), node,
                       [](const MemberSpec& member, const NodeId& id) {
                         return member.node < id;
                       });
  if (at == plan.members.end() || at->node != node) return std::nullopt;
  return at - plan.members.begin();
}

std::string KindInForce(const RunPlan& plan) {
  if (plan.topology.kind == "auto" && NeedsAllEdges(plan)) return "complete";
  return KindInForce(plan.topology, static_cast<int64_t>(plan.members.size()));
}

absl::StatusOr<AnyGraph> PlanGraph(const RunPlan& plan, int64_t round) {
  return BuildTopology(AmongMembers(plan), TopologySeed(plan), MemberIds(plan),
                       round, UndialableOf(plan));
}

absl::StatusOr<AnyGraph> PlanWindow(const RunPlan& plan) {
  return BuildWindow(AmongMembers(plan), TopologySeed(plan), MemberIds(plan),
                     UndialableOf(plan));
}

absl::StatusOr<PlanTopology> DeriveTopology(const RunPlan& plan,
                                            int64_t round) {
  DFL_ASSIGN_OR_RETURN(AnyGraph graph, PlanGraph(plan, round));
  return DeriveTopology(plan, std::move(graph));
}

absl::StatusOr<PlanTopology> DeriveTopology(const RunPlan& plan,
                                            AnyGraph graph) {
  PlanTopology out;
  out.members = MemberIds(plan);
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
  if (topology.members.empty()) return 0;
  if (!topology.directed) return SpectralGap(topology.weights);
  return 1 - std::max(SecondLargestModulus(topology.directed_weights.a),
                      SecondLargestModulus(topology.directed_weights.b));
}

namespace {

// Marks whom member `i` hears and sends to in `graph`.
void MarkNeighbours(const AnyGraph& graph, int64_t i, std::vector<bool>& heard,
                    std::vector<bool>& sent_to) {
  const Graph* undirected = std::get_if<Graph>(&graph);
  for (size_t j = 0; j < heard.size(); ++j) {
    const auto other = static_cast<int64_t>(j);
    if (other == i) continue;
    if (undirected != nullptr) {
      const bool edge = undirected->HasEdge(i, other);
      heard[j] = heard[j] || edge;
      sent_to[j] = sent_to[j] || edge;
    } else {
      const auto& directed = std::get<Digraph>(graph);
      heard[j] = heard[j] || directed.HasArc(other, i);
      sent_to[j] = sent_to[j] || directed.HasArc(i, other);
    }
  }
}

// The round from which on no graph is new; -1: there is always a new one.
int64_t EndOfGraphs(const RunPlan& plan, const AlgorithmInfo& algorithm) {
  const TopologySpec& spec = plan.topology;
  if (!TopologyVaries(spec)) return 1;
  int64_t end = -1;
  const auto ends = [&end](int64_t limit) {
    if (limit > 0) end = end < 0 ? limit : std::min(end, limit);
  };
  // Graphs are those of iterations.
  if (algorithm.round_is_iteration) ends(plan.stop.rounds);
  if (algorithm.steps_of == nullptr) ends(plan.stop.steps);
  if (spec.kind == "time-varying") {
    const int64_t cycle = static_cast<int64_t>(spec.edge_sets.size()) *
                          std::max<int64_t>(1, spec.every);
    end = end < 0 ? cycle : std::min(end, cycle);
  }
  return end;
}

}  // namespace

absl::StatusOr<NeighbourCount> CountNeighbours(const RunPlan& plan,
                                               const AlgorithmInfo& algorithm,
                                               const AnyGraph& first,
                                               int64_t place) {
  const int64_t end = EndOfGraphs(plan, algorithm);
  const auto all = static_cast<int64_t>(plan.members.size()) - 1;
  std::vector<bool> heard(plan.members.size());
  std::vector<bool> sent_to(plan.members.size());
  NeighbourCount count;
  int64_t round = 0;
  for (int looked = 0; end < 0 || round < end; ++looked) {
    if (looked == kGraphsLookedAt && plan.topology.kind != "time-varying") {
      return NeighbourCount{all, all};
    }
    if (looked == 0) {
      MarkNeighbours(first, place, heard, sent_to);
    } else {
      DFL_ASSIGN_OR_RETURN(const AnyGraph graph, PlanGraph(plan, round));
      MarkNeighbours(graph, place, heard, sent_to);
    }
    count.heard = std::count(heard.begin(), heard.end(), true);
    count.sent_to = std::count(sent_to.begin(), sent_to.end(), true);
    const bool everybody = count.heard == all && count.sent_to == all;
    if (everybody || !TopologyVaries(plan.topology)) break;
    round = NextGraphRound(plan.topology, round);
  }
  return count;
}

bool MeetWithin(const RunPlan& plan, const NodeId& a, const NodeId& b,
                int64_t from, int64_t to) {
  const std::optional<int64_t> i = PlaceOf(plan, a);
  const std::optional<int64_t> j = PlaceOf(plan, b);
  if (!i || !j) return false;
  int64_t round = from;
  for (int looked = 0; round < to; ++looked) {
    if (looked == kGraphsLookedAt) return true;
    const absl::StatusOr<AnyGraph> graph = PlanGraph(plan, round);
    if (!graph.ok()) return false;
    const Graph* undirected = std::get_if<Graph>(&*graph);
    const bool meet = undirected != nullptr
                          ? undirected->HasEdge(*i, *j)
                          : std::get<Digraph>(*graph).HasArc(*i, *j) ||
                                std::get<Digraph>(*graph).HasArc(*j, *i);
    if (meet) return true;
    if (!TopologyVaries(plan.topology)) return false;
    round = NextGraphRound(plan.topology, round);
  }
  return false;
}

}  // namespace dfl::core
