// What a plan means for single members.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/graph/graph.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/plan_network.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/core/plan/run_plan.h"

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
  out.rows_known = round.rows > 0;
  if (out.rows_known) {
    out.sample_weight = static_cast<double>(member.rows) *
                        static_cast<double>(out.member_count) / round.rows;
  }
  out.algorithm = round.algorithm;
  out.facts = round.facts;
  out.exchange_deadline = plan.deadline.exchange;
  return out;
}

// A checked plan, its algorithm's entry, and the graph of `round`.
struct Checked {
  const AlgorithmInfo* algorithm;
  AnyGraph graph;
};
absl::StatusOr<Checked> Check(const RunPlan& plan, int64_t round,
                              const Catalogue& catalogue) {
  DFL_ASSIGN_OR_RETURN(AnyGraph graph, ValidatedGraph(plan, catalogue));
  if (TopologyVaries(plan.topology)) {
    DFL_ASSIGN_OR_RETURN(graph, PlanGraph(plan, round));
  }
  DFL_ASSIGN_OR_RETURN(const AlgorithmInfo* algorithm,
                       catalogue.Find(plan.algorithm.name));
  return Checked{algorithm, std::move(graph)};
}

}  // namespace

absl::StatusOr<NodePlan> DeriveNodePlan(const RunPlan& plan, const NodeId& self,
                                        int64_t round,
                                        const Catalogue& catalogue) {
  DFL_ASSIGN_OR_RETURN(Checked checked, Check(plan, round, catalogue));
  return DeriveCheckedNodePlan(plan, *checked.algorithm, self,
                               std::move(checked.graph));
}

absl::StatusOr<NodePlan> DeriveCheckedNodePlan(const RunPlan& plan,
                                               const AlgorithmInfo& algorithm,
                                               const NodeId& self,
                                               AnyGraph graph) {
  const std::optional<int64_t> place = PlaceOf(plan, self);
  if (!place) {
    const absl::Status status = UnknownMemberError("members", self, plan);
    return absl::NotFoundError(status.message());
  }
  DFL_ASSIGN_OR_RETURN(const Round round,
                       RoundOf(plan, algorithm, std::move(graph)));
  return NodePlanOf(plan, round, *place);
}

absl::StatusOr<std::vector<NodePlan>> DeriveNodePlans(
    const RunPlan& plan, int64_t round, const Catalogue& catalogue) {
  DFL_ASSIGN_OR_RETURN(Checked checked, Check(plan, round, catalogue));
  return DeriveCheckedNodePlans(plan, *checked.algorithm,
                                std::move(checked.graph));
}

absl::StatusOr<std::vector<NodePlan>> DeriveCheckedNodePlans(
    const RunPlan& plan, const AlgorithmInfo& algorithm, AnyGraph graph) {
  DFL_ASSIGN_OR_RETURN(const Round common,
                       RoundOf(plan, algorithm, std::move(graph)));
  std::vector<NodePlan> plans;
  for (size_t i = 0; i < plan.members.size(); ++i) {
    DFL_ASSIGN_OR_RETURN(NodePlan node,
                         NodePlanOf(plan, common, static_cast<int64_t>(i)));
    plans.push_back(std::move(node));
  }
  return plans;
}

}  // namespace dfl::core
