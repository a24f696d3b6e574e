#include "daemon/core/plan/derived_plan.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/core/graph/graph.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/participants.h"
#include "daemon/core/plan/plan_network.h"
#include "daemon/core/plan/plan_topology.h"

namespace dfl::core {
namespace {

// Neighbours of a node, by place, all with one weight.
std::vector<Neighbour> WithWeight(const RunPlan& plan,
                                  const std::vector<int64_t>& places,
                                  double weight) {
  std::vector<Neighbour> out;
  out.reserve(places.size());
  for (const int64_t place : places) {
    out.push_back(
        Neighbour{plan.members[static_cast<size_t>(place)].node, weight});
  }
  return out;
}

void TakeUndirected(const RunPlan& plan, const Graph& graph, int64_t place,
                    NodePlan& out) {
  const MixingRow row =
      BuildMixingRow(plan.topology.weights, graph, plan.topology.matrix, place);
  const std::vector<int64_t>& places = graph.neighbours(place);
  out.self_weight = row.self;
  out.neighbours = WithWeight(plan, places, 0);
  for (size_t q = 0; q < places.size(); ++q) {
    out.neighbours[q].weight = row.weights[q];
  }
  // In and out are the same places: so are a_ij and b_ji.
  out.receiver_weight = 1 / static_cast<double>(1 + places.size());
  out.sender_weight = out.receiver_weight;
  out.in_neighbours = WithWeight(plan, places, out.receiver_weight);
  out.out_neighbours = out.in_neighbours;
}

void TakeDirected(const RunPlan& plan, const Digraph& graph, int64_t place,
                  NodePlan& out) {
  out.receiver_weight = ReceiverWeight(graph, place);
  out.sender_weight = SenderWeight(graph, place);
  out.in_neighbours = WithWeight(plan, graph.in(place), out.receiver_weight);
  out.out_neighbours = WithWeight(plan, graph.out(place), out.sender_weight);
  out.self_weight = out.receiver_weight;
  std::vector<int64_t> only_out;
  std::set_difference(graph.out(place).begin(), graph.out(place).end(),
                      graph.in(place).begin(), graph.in(place).end(),
                      std::back_inserter(only_out));
  const std::vector<Neighbour> silent = WithWeight(plan, only_out, 0);
  std::merge(
      out.in_neighbours.begin(), out.in_neighbours.end(), silent.begin(),
      silent.end(), std::back_inserter(out.neighbours),
      [](const Neighbour& a, const Neighbour& b) { return a.node < b.node; });
}

// What the members have in common in a round.
struct Round {
  AnyGraph graph = Graph(0);
  const AlgorithmInfo* algorithm = nullptr;
  double rows = 0;  // of all members; 0: not every one tells
  std::shared_ptr<const AlgorithmFacts> facts;
};

// `plan` is checked, `graph` is that of the round.
absl::StatusOr<Round> RoundOf(const RunPlan& plan,
                              const AlgorithmInfo& algorithm, AnyGraph graph) {
  Round round;
  round.algorithm = &algorithm;
  if (RowsKnown(plan)) {
    for (const MemberSpec& member : plan.members) {
      round.rows += static_cast<double>(member.rows);
    }
  }
  if (algorithm.derive != nullptr) {
    DFL_ASSIGN_OR_RETURN(const Network network,
                         NetworkOf(plan, algorithm, graph));
    round.facts = algorithm.derive(network);
  }
  round.graph = std::move(graph);
  return round;
}

// The plan as member `place` sees it.
absl::StatusOr<NodePlan> NodePlanOf(const RunPlan& plan, const Round& round,
                                    int64_t place) {
  const MemberSpec& member = plan.members[static_cast<size_t>(place)];
  NodePlan out;
  out.self = member.node;
  out.seed = plan.seed;
  const auto overrides = plan.nodes.find(out.self);
  DFL_ASSIGN_OR_RETURN(
      out.knobs,
      Knobs::Resolve(round.algorithm->knobs, plan.algorithm.knobs,
                     overrides == plan.nodes.end() ? KnobValues{}
                                                   : overrides->second.knobs));
  if (const Graph* undirected = std::get_if<Graph>(&round.graph)) {
    TakeUndirected(plan, *undirected, place, out);
  } else {
    TakeDirected(plan, std::get<Digraph>(round.graph), place, out);
  }
  out.member_count = static_cast<int64_t>(plan.members.size());
  out.place = place;
  out.trains = member.participation == Participation::kTrain;
  out.rows_known = round.rows > 0;
  if (out.rows_known) {
    out.sample_weight = static_cast<double>(member.rows) *
                        static_cast<double>(out.member_count) / round.rows;
  }
  out.algorithm = round.algorithm;
  out.facts = round.facts;
  out.optimizer = plan.optimizer;
  out.aggregation = plan.aggregation;
  out.exchange_deadline = plan.deadline.exchange;
  return out;
}

// The plan as a node sees it that is no member.
absl::StatusOr<NodePlan> WatcherPlan(const RunPlan& plan,
                                     const AlgorithmInfo& algorithm,
                                     const NodeId& self) {
  NodePlan out;
  out.self = self;
  out.seed = plan.seed;
  DFL_ASSIGN_OR_RETURN(out.knobs,
                       Knobs::Resolve(algorithm.knobs, plan.algorithm.knobs));
  out.member_count = static_cast<int64_t>(plan.members.size());
  out.takes_part = false;
  out.algorithm = &algorithm;
  out.optimizer = plan.optimizer;
  out.aggregation = plan.aggregation;
  out.exchange_deadline = plan.deadline.exchange;
  return out;
}

// A checked plan that is seen in one round by every member.
absl::StatusOr<std::vector<NodePlan>> NodePlansOf(const CheckedPlan& checked,
                                                  AnyGraph graph) {
  const RunPlan& plan = *checked.plan;
  DFL_ASSIGN_OR_RETURN(const Round round,
                       RoundOf(plan, *checked.algorithm, std::move(graph)));
  std::vector<NodePlan> nodes;
  for (size_t i = 0; i < plan.members.size(); ++i) {
    DFL_ASSIGN_OR_RETURN(NodePlan node,
                         NodePlanOf(plan, round, static_cast<int64_t>(i)));
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// The graph of `round`; that of round 0 is there already.
absl::StatusOr<AnyGraph> GraphOf(const CheckedPlan& checked, int64_t round) {
  if (!TopologyVaries(checked.plan->topology)) return *checked.graph;
  return PlanGraph(*checked.plan, round);
}

}  // namespace

absl::StatusOr<NodePlan> DeriveCheckedNodePlan(const RunPlan& plan,
                                               const AlgorithmInfo& algorithm,
                                               const NodeId& self,
                                               AnyGraph graph) {
  const std::optional<int64_t> place = PlaceOf(plan, self);
  if (!place && FollowsView(plan)) return WatcherPlan(plan, algorithm, self);
  if (!place) {
    const absl::Status status = UnknownMemberError("members", self, plan);
    return absl::NotFoundError(status.message());
  }
  DFL_ASSIGN_OR_RETURN(const Round round,
                       RoundOf(plan, algorithm, std::move(graph)));
  return NodePlanOf(plan, round, *place);
}

absl::StatusOr<DerivedPlan> Derive(CheckedPlan checked, const NodeId& self) {
  DerivedPlan derived;
  DFL_ASSIGN_OR_RETURN(derived.node,
                       DeriveCheckedNodePlan(*checked.plan, *checked.algorithm,
                                             self, *checked.graph));
  derived.checked = std::move(checked);
  return derived;
}

absl::StatusOr<DerivedPlan> DeriveForWatcher(CheckedPlan checked,
                                             const NodeId& self) {
  DerivedPlan derived;
  DFL_ASSIGN_OR_RETURN(derived.node,
                       WatcherPlan(*checked.plan, *checked.algorithm, self));
  derived.checked = std::move(checked);
  return derived;
}

absl::StatusOr<DerivedPlan> CheckAndDerive(RunPlan plan, const NodeId& self,
                                           const Catalogue& catalogue) {
  DFL_ASSIGN_OR_RETURN(CheckedPlan checked,
                       CheckPlan(std::move(plan), catalogue));
  return Derive(std::move(checked), self);
}

absl::StatusOr<std::vector<DerivedPlan>> DeriveForAll(
    const CheckedPlan& checked) {
  DFL_ASSIGN_OR_RETURN(std::vector<NodePlan> nodes,
                       NodePlansOf(checked, *checked.graph));
  std::vector<DerivedPlan> derived;
  derived.reserve(nodes.size());
  for (NodePlan& node : nodes) derived.push_back({checked, std::move(node)});
  return derived;
}

absl::StatusOr<NodePlan> DeriveNodePlan(const RunPlan& plan, const NodeId& self,
                                        int64_t round,
                                        const Catalogue& catalogue) {
  DFL_ASSIGN_OR_RETURN(const CheckedPlan checked, CheckPlan(plan, catalogue));
  DFL_ASSIGN_OR_RETURN(AnyGraph graph, GraphOf(checked, round));
  return DeriveCheckedNodePlan(plan, *checked.algorithm, self,
                               std::move(graph));
}

absl::StatusOr<std::vector<NodePlan>> DeriveNodePlans(
    const RunPlan& plan, int64_t round, const Catalogue& catalogue) {
  DFL_ASSIGN_OR_RETURN(const CheckedPlan checked, CheckPlan(plan, catalogue));
  DFL_ASSIGN_OR_RETURN(AnyGraph graph, GraphOf(checked, round));
  return NodePlansOf(checked, std::move(graph));
}

}  // namespace dfl::core
