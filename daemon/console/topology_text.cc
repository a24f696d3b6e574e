#include "daemon/console/topology_text.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/console/table.h"
#include "daemon/console/units.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/participants.h"
#include "daemon/core/plan/plan_topology.h"

namespace dfl::console {
namespace {

bool IsConnected(const core::AnyGraph& graph) {
  if (const auto* directed = std::get_if<core::Digraph>(&graph)) {
    return directed->IsStronglyConnected();
  }
  return std::get<core::Graph>(graph).IsConnected();
}

Json WeightsOf(const core::PlanTopology& topology,
               const std::vector<int64_t>& nodes,
               const std::function<double(int64_t)>& weight) {
  Json out = Json::array();
  for (const int64_t j : nodes) {
    out.push_back(
        Json{{"node", topology.members[j].name()}, {"weight", weight(j)}});
  }
  return out;
}

Json UndirectedNodes(const core::PlanTopology& topology) {
  Json nodes = Json::array();
  for (int64_t i = 0; i < topology.graph.size(); ++i) {
    nodes.push_back(
        Json{{"node", topology.members[i].name()},
             {"self_weight", topology.weights[i][i]},
             {"neighbours",
              WeightsOf(topology, topology.graph.neighbours(i),
                        [&](int64_t j) { return topology.weights[i][j]; })}});
  }
  return nodes;
}

Json DirectedNodes(const core::PlanTopology& topology) {
  const core::DirectedWeights& w = topology.directed_weights;
  Json nodes = Json::array();
  for (int64_t i = 0; i < topology.digraph.size(); ++i) {
    nodes.push_back(Json{
        {"node", topology.members[i].name()},
        {"receiver_weight", w.a[i][i]},
        {"sender_weight", w.b[i][i]},
        {"in_neighbours", WeightsOf(topology, topology.digraph.in(i),
                                    [&](int64_t j) { return w.a[i][j]; })},
        {"out_neighbours", WeightsOf(topology, topology.digraph.out(i),
                                     [&](int64_t j) { return w.b[j][i]; })}});
  }
  return nodes;
}

std::string YesNo(bool value) { return value ? "yes" : "no"; }

// "0.5 to 1.333"
std::string Range(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const std::string from = Fixed(*low, 4);
  const std::string to = Fixed(*high, 4);
  return from == to ? from : absl::StrCat(from, " to ", to);
}

// "rows 1.0000, columns 0.7500 to 1.3333"
std::string Sums(const core::MixingMatrix& w) {
  return absl::StrCat("rows ", Range(core::RowSums(w)), ", columns ",
                      Range(core::ColumnSums(w)));
}

// "graph: ring of 4, 4 edges, connected"
std::string GraphLine(const core::RunPlan& plan, bool directed, size_t edges,
                      bool connected) {
  return absl::StrCat(
      "graph: ", core::KindInForce(plan), " of ", plan.members.size(), ", ",
      edges, directed ? " directed edges, " : " edges, ",
      connected ? "" : "not ", directed ? "strongly " : "", "connected",
      core::TopologyVaries(plan.topology) ? " in round 0" : "");
}

// Of a graph too large for its matrices.
std::string LargeGraphLine(const core::CheckedPlan& checked) {
  const core::RunPlan& plan = *checked.plan;
  const core::AnyGraph& graph = *checked.graph;
  if (const auto* directed = std::get_if<core::Digraph>(&graph)) {
    return GraphLine(plan, true, directed->Arcs().size(), IsConnected(graph));
  }
  return GraphLine(plan, false, std::get<core::Graph>(graph).Edges().size(),
                   IsConnected(graph));
}

std::string UndirectedTable(const core::PlanTopology& topology) {
  Table table({"NODE", ">OWN WEIGHT", "NEIGHBOURS"});
  for (int64_t i = 0; i < topology.graph.size(); ++i) {
    std::vector<std::string> neighbours;
    for (const int64_t j : topology.graph.neighbours(i)) {
      neighbours.push_back(absl::StrCat(topology.members[j].name(), " (",
                                        Fixed(topology.weights[i][j], 3), ")"));
    }
    table.Add({topology.members[i].name(), Fixed(topology.weights[i][i], 3),
               absl::StrJoin(neighbours, ", ")});
  }
  return table.ToString();
}

// All of a row of A are alike, and all of a column of B.
std::string DirectedTable(const core::PlanTopology& topology) {
  const core::DirectedWeights& w = topology.directed_weights;
  const auto names = [&topology](const std::vector<int64_t>& nodes) {
    std::vector<std::string> out;
    for (const int64_t j : nodes) out.push_back(topology.members[j].name());
    return absl::StrJoin(out, ", ");
  };
  Table table({"NODE", ">A", "HEARS", ">B", "SENDS TO"});
  for (int64_t i = 0; i < topology.digraph.size(); ++i) {
    table.Add({topology.members[i].name(), Fixed(w.a[i][i], 3),
               names(topology.digraph.in(i)), Fixed(w.b[i][i], 3),
               names(topology.digraph.out(i))});
  }
  return table.ToString();
}

// `graph`: of the round.
absl::StatusOr<TopologyReport> Report(const core::RunPlan& plan, int64_t round,
                                      core::AnyGraph graph) {
  TopologyReport report;
  report.round = round;
  DFL_ASSIGN_OR_RETURN(report.topology,
                       core::DeriveTopology(plan, std::move(graph)));
  const core::PlanTopology& topology = report.topology;
  if (topology.directed) {
    report.connected = topology.digraph.IsStronglyConnected();
    report.bipartite = topology.digraph.Undirected().IsBipartite();
    report.edges = topology.digraph.Arcs().size();
  } else {
    report.connected = topology.graph.IsConnected();
    report.bipartite = topology.graph.IsBipartite();
    report.edges = topology.graph.Edges().size();
  }
  report.varies = core::TopologyVaries(plan.topology);
  report.window_connected = report.connected;
  if (report.varies) {
    DFL_ASSIGN_OR_RETURN(const core::AnyGraph window, core::PlanWindow(plan));
    report.window_connected = IsConnected(window);
  }
  return report;
}

}  // namespace

absl::StatusOr<TopologyReport> ReportTopology(const core::RunPlan& plan,
                                              int64_t round) {
  if (plan.members.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "participants: ", core::ParticipantsText(plan),
        ": nobody who is there is known to take part, so there is no graph"));
  }
  DFL_ASSIGN_OR_RETURN(core::AnyGraph graph, core::PlanGraph(plan, round));
  return Report(plan, round, std::move(graph));
}

Json TopologyJson(const core::RunPlan& plan, const TopologyReport& report) {
  const core::PlanTopology& topology = report.topology;
  const core::DirectedWeights& w = topology.directed_weights;
  Json out{{"plan_version", plan.version},
           {"kind", core::KindInForce(plan)},
           {"edge_probability", plan.topology.edge_probability},
           {"degree", plan.topology.degree},
           {"radius", plan.topology.radius},
           {"every", plan.topology.every},
           {"directed", topology.directed},
           {"varies", report.varies},
           {"round", report.round},
           {"weights", plan.topology.weights},
           {"edges", report.edges},
           {"connected", report.connected},
           {"window_connected", report.window_connected},
           {"bipartite", report.bipartite},
           {"spectral_gap", core::SpectralGap(topology)}};
  if (topology.directed) {
    out["spectral_gap_a"] = 1 - core::SecondLargestModulus(w.a);
    out["spectral_gap_b"] = 1 - core::SecondLargestModulus(w.b);
    out["row_sums_a"] = core::RowSums(w.a);
    out["column_sums_a"] = core::ColumnSums(w.a);
    out["row_sums_b"] = core::RowSums(w.b);
    out["column_sums_b"] = core::ColumnSums(w.b);
  } else {
    out["row_sums"] = core::RowSums(topology.weights);
    out["column_sums"] = core::ColumnSums(topology.weights);
  }
  out["nodes"] =
      topology.directed ? DirectedNodes(topology) : UndirectedNodes(topology);
  return out;
}

std::string TopologyText(const core::RunPlan& plan,
                         const TopologyReport& report) {
  const core::TopologySpec& spec = plan.topology;
  const core::PlanTopology& topology = report.topology;
  std::vector<std::pair<std::string, std::string>> lines = {
      {"kind", spec.kind == "auto"
                   ? absl::StrCat(core::KindInForce(plan), " (auto)")
                   : spec.kind}};
  if (spec.kind == "erdos-renyi") {
    lines.emplace_back("edge probability", absl::StrCat(spec.edge_probability));
  } else if (spec.kind == "k-nearest" || spec.kind == "random-regular" ||
             core::KindInForce(plan) == "hashed") {
    lines.emplace_back("degree", absl::StrCat(spec.degree));
  } else if (spec.kind == "random-geometric") {
    lines.emplace_back("radius", absl::StrCat(spec.radius));
  }
  if (report.varies) {
    const std::string rounds =
        spec.every > 1 ? absl::StrCat(spec.every, " rounds") : "round";
    lines.emplace_back("changes",
                       spec.kind == "time-varying"
                           ? absl::StrCat(spec.edge_sets.size(),
                                          " sets of edges in turn, one "
                                          "every ",
                                          rounds)
                           : absl::StrCat("drawn afresh every ", rounds));
    lines.emplace_back("round", absl::StrCat(report.round));
  }
  if (!topology.directed) lines.emplace_back("weights", spec.weights);
  lines.emplace_back(
      "edges",
      absl::StrCat(report.edges, topology.directed ? ", directed" : ""));
  lines.emplace_back(topology.directed ? "strongly connected" : "connected",
                     YesNo(report.connected));
  if (report.varies) {
    lines.emplace_back("connected over rounds", YesNo(report.window_connected));
  }
  lines.emplace_back("bipartite", YesNo(report.bipartite));
  if (!topology.directed) {
    lines.emplace_back("spectral gap",
                       Fixed(core::SpectralGap(topology.weights), 4));
    lines.emplace_back("sums of W", Sums(topology.weights));
    return absl::StrCat(KeyValueLines(lines), "\n", UndirectedTable(topology));
  }
  const core::DirectedWeights& w = topology.directed_weights;
  lines.emplace_back("spectral gap of A",
                     Fixed(1 - core::SecondLargestModulus(w.a), 4));
  lines.emplace_back("spectral gap of B",
                     Fixed(1 - core::SecondLargestModulus(w.b), 4));
  lines.emplace_back("sums of A", Sums(w.a));
  lines.emplace_back("sums of B", Sums(w.b));
  return absl::StrCat(KeyValueLines(lines), "\n", DirectedTable(topology));
}

std::string TopologyLine(const core::CheckedPlan& checked) {
  constexpr size_t kMostNodes = 1000;
  const core::RunPlan& plan = *checked.plan;
  if (plan.members.empty()) {
    return absl::StrCat("graph: ", plan.topology.kind,
                        " of whoever is there and takes part (participants: ",
                        core::ParticipantsText(plan), ")");
  }
  if (plan.members.size() > kMostNodes) return LargeGraphLine(checked);
  const absl::StatusOr<TopologyReport> report = Report(plan, 0, *checked.graph);
  if (!report.ok()) return "";
  const core::PlanTopology& topology = report->topology;
  const bool directed = topology.directed;
  std::string line =
      GraphLine(plan, directed, report->edges, report->connected);
  if (report->varies) {
    absl::StrAppend(&line, ", ", report->window_connected ? "" : "not ",
                    "connected over all rounds");
  }
  if (report->bipartite) line += ", bipartite";
  if (!directed) {
    absl::StrAppend(&line, ", ", plan.topology.weights,
                    " weights, spectral gap ",
                    Fixed(core::SpectralGap(topology.weights), 4));
    return line;
  }
  const core::DirectedWeights& w = topology.directed_weights;
  absl::StrAppend(&line, ", spectral gaps ",
                  Fixed(1 - core::SecondLargestModulus(w.a), 4), " of A and ",
                  Fixed(1 - core::SecondLargestModulus(w.b), 4),
                  " of B, sums of A in rows ", Range(core::RowSums(w.a)),
                  ", of B in columns ", Range(core::ColumnSums(w.b)));
  return line;
}

}  // namespace dfl::console
