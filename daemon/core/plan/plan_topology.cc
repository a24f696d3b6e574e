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

// A plan that follows the view may name edges of members that are not there.
Strangers StrangersOf(const RunPlan& plan) {
  return FollowsView(plan) ? Strangers::kLeaveOut : Strangers::kRefuse;
}

// The plan's topology with the kind that is in force, which `other` keeps where
// the plan says another.
const TopologySpec& SpecInForce(const RunPlan& plan, TopologySpec& other) {
  if (plan.topology.kind != "auto") return plan.topology;
  other = plan.topology;
  other.kind = KindInForce(plan);
  return other;
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
  TopologySpec other;
  return BuildTopology(SpecInForce(plan, other), TopologySeed(plan),
                       MemberIds(plan), round, UndialableOf(plan),
                       StrangersOf(plan));
}

absl::StatusOr<AnyGraph> PlanWindow(const RunPlan& plan) {
  TopologySpec other;
  return BuildWindow(SpecInForce(plan, other), TopologySeed(plan),
                     MemberIds(plan), UndialableOf(plan), StrangersOf(plan));
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

double SpectralGapIfSmall(const RunPlan& plan) {
  constexpr size_t kMost = 256;
  constexpr size_t kMostDirected = 128;
  const size_t members = plan.members.size();
  if (members > (plan.topology.directed ? kMostDirected : kMost)) return 0;
  const absl::StatusOr<PlanTopology> topology = DeriveTopology(plan);
  return topology.ok() ? SpectralGap(*topology) : 0;
}

namespace {

// Whom a member hears and sends to in one graph or several.
class Neighbours {
 public:
  Neighbours(const RunPlan& plan, int64_t place)
      : plan_(plan),
        place_(place),
        heard_(plan.members.size()),
        sent_to_(plan.members.size()) {}

  void Add(const AnyGraph& graph) {
    if (const Graph* undirected = std::get_if<Graph>(&graph)) {
      Mark(undirected->neighbours(place_), heard_);
      Mark(undirected->neighbours(place_), sent_to_);
      return;
    }
    Mark(std::get<Digraph>(graph).in(place_), heard_);
    Mark(std::get<Digraph>(graph).out(place_), sent_to_);
  }

  // The edges of a list.
  void Add(const EdgeList& edges) {
    const NodeId& self = plan_.members[static_cast<size_t>(place_)].node;
    const bool both_ways = !plan_.topology.directed;
    for (const auto& [from, to] : edges) {
      if (from != self && to != self) continue;
      const std::optional<int64_t> other =
          PlaceOf(plan_, from == self ? to : from);
      if (!other.has_value()) continue;
      if (to == self || both_ways) Mark({*other}, heard_);
      if (from == self || both_ways) Mark({*other}, sent_to_);
    }
  }

  NeighbourCount count() const {
    return {std::count(heard_.begin(), heard_.end(), true),
            std::count(sent_to_.begin(), sent_to_.end(), true)};
  }

 private:
  static void Mark(const std::vector<int64_t>& nodes,
                   std::vector<bool>& marked) {
    for (const int64_t node : nodes) marked[static_cast<size_t>(node)] = true;
  }

  const RunPlan& plan_;
  const int64_t place_;
  std::vector<bool> heard_;
  std::vector<bool> sent_to_;
};

// How many graphs have been looked at, and whether that is enough.
class Looks {
 public:
  bool enough() const {
    return graphs_ >= kGraphsLookedAt || edges_ > kMostEdges;
  }
  void Count(int64_t edges) {
    ++graphs_;
    edges_ += edges;
  }

 private:
  int graphs_ = 0;
  int64_t edges_ = 0;
};

// Of one that is drawn; those run both ways.
int64_t EdgesOf(const AnyGraph& drawn) {
  const Graph& graph = std::get<Graph>(drawn);
  int64_t ends = 0;
  for (int64_t i = 0; i < graph.size(); ++i) ends += graph.degree(i);
  return ends / 2;
}

// Either way.
bool HasEdge(const AnyGraph& graph, int64_t i, int64_t j) {
  if (const Graph* undirected = std::get_if<Graph>(&graph)) {
    return undirected->HasEdge(i, j);
  }
  const auto& directed = std::get<Digraph>(graph);
  return directed.HasArc(i, j) || directed.HasArc(j, i);
}

bool IsListed(const EdgeList& edges, const NodeId& a, const NodeId& b) {
  return std::any_of(edges.begin(), edges.end(), [&](const auto& edge) {
    return (edge.first == a && edge.second == b) ||
           (edge.first == b && edge.second == a);
  });
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
  Neighbours neighbours(plan, place);
  int64_t round = 0;
  if (plan.topology.kind == "time-varying") {
    for (const EdgeList& edges : plan.topology.edge_sets) {
      if (round >= end) break;
      neighbours.Add(edges);
      round = NextGraphRound(plan.topology, round);
    }
    return neighbours.count();
  }
  neighbours.Add(first);
  if (!TopologyVaries(plan.topology)) return neighbours.count();
  Looks looks;
  looks.Count(EdgesOf(first));
  while (true) {
    const NeighbourCount count = neighbours.count();
    if (count.heard == all && count.sent_to == all) return count;
    round = NextGraphRound(plan.topology, round);
    if (end >= 0 && round >= end) return count;
    if (looks.enough()) return NeighbourCount{all, all};
    DFL_ASSIGN_OR_RETURN(const AnyGraph graph, PlanGraph(plan, round));
    neighbours.Add(graph);
    looks.Count(EdgesOf(graph));
  }
}

bool MeetWithin(const RunPlan& plan, const NodeId& a, const NodeId& b,
                int64_t from, int64_t to) {
  const std::optional<int64_t> i = PlaceOf(plan, a);
  const std::optional<int64_t> j = PlaceOf(plan, b);
  if (!i || !j) return false;
  if (!TopologyVaries(plan.topology)) {
    const absl::StatusOr<AnyGraph> graph = PlanGraph(plan);
    return from < to && graph.ok() && HasEdge(*graph, *i, *j);
  }
  Looks looks;
  for (int64_t round = from; round < to;
       round = NextGraphRound(plan.topology, round)) {
    if (looks.enough()) return true;
    if (plan.topology.kind == "time-varying") {
      const EdgeList& edges = plan.topology.edge_sets[static_cast<size_t>(
          GraphNumber(plan.topology, round))];
      if (IsListed(edges, a, b)) return true;
      looks.Count(static_cast<int64_t>(edges.size()));
      continue;
    }
    const absl::StatusOr<AnyGraph> graph = PlanGraph(plan, round);
    if (!graph.ok()) return false;
    if (HasEdge(*graph, *i, *j)) return true;
    looks.Count(EdgesOf(*graph));
  }
  return false;
}

}  // namespace dfl::core
