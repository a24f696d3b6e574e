// dflctl topology show|set.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/commands.h"
#include "cli/fleet_plan.h"
#include "cli/table.h"
#include "cli/units.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/mixing.h"
#include "daemon/core/plan_topology.h"
#include "daemon/core/topology.h"

namespace dfl::cli {
namespace {

struct ShowCommand {
  int64_t round = 0;
};

struct SetCommand {
  std::string kind;
  std::optional<double> edge_probability;
  std::optional<int64_t> degree;
  std::optional<double> radius;
  std::optional<int64_t> every;
  std::optional<bool> directed;
  std::string weights;
  std::vector<std::string> edges;
  std::vector<std::string> edge_sets;
  ApplyOptions options;
};

// What `show` tells: the graph of one round, and of all rounds together.
struct Shown {
  int64_t round = 0;
  core::PlanTopology topology;
  bool connected = false;  // directed: strongly
  bool bipartite = false;  // directed: without regard to directions
  size_t edges = 0;
  bool varies = false;
  bool window_connected = false;
};

bool IsConnected(const core::AnyGraph& graph) {
  if (const auto* directed = std::get_if<core::Digraph>(&graph)) {
    return directed->IsStronglyConnected();
  }
  return std::get<core::Graph>(graph).IsConnected();
}

absl::StatusOr<Shown> Look(const core::RunPlan& plan, int64_t round) {
  Shown shown;
  shown.round = round;
  DFL_ASSIGN_OR_RETURN(shown.topology, core::DeriveTopology(plan, round));
  const core::PlanTopology& topology = shown.topology;
  if (topology.directed) {
    shown.connected = topology.digraph.IsStronglyConnected();
    shown.bipartite = topology.digraph.Undirected().IsBipartite();
    shown.edges = topology.digraph.Arcs().size();
  } else {
    shown.connected = topology.graph.IsConnected();
    shown.bipartite = topology.graph.IsBipartite();
    shown.edges = topology.graph.Edges().size();
  }
  shown.varies = core::TopologyVaries(plan.topology);
  DFL_ASSIGN_OR_RETURN(const core::AnyGraph window, core::PlanWindow(plan));
  shown.window_connected = IsConnected(window);
  return shown;
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

Json ToJsonValue(const core::RunPlan& plan, const Shown& shown) {
  const core::PlanTopology& topology = shown.topology;
  const core::DirectedWeights& w = topology.directed_weights;
  Json out{{"plan_version", plan.version},
           {"kind", plan.topology.kind},
           {"edge_probability", plan.topology.edge_probability},
           {"degree", plan.topology.degree},
           {"radius", plan.topology.radius},
           {"every", plan.topology.every},
           {"directed", topology.directed},
           {"varies", shown.varies},
           {"round", shown.round},
           {"weights", plan.topology.weights},
           {"edges", shown.edges},
           {"connected", shown.connected},
           {"window_connected", shown.window_connected},
           {"bipartite", shown.bipartite},
           {"spectral_gap", core::SpectralGap(topology)}};
  if (topology.directed) {
    out["spectral_gap_a"] = 1 - core::SecondLargestModulus(w.a);
    out["spectral_gap_b"] = 1 - core::SecondLargestModulus(w.b);
    out["row_sums_a"] = core::RowSums(w.a);
    out["column_sums_a"] = core::ColumnSums(w.a);
    out["row_sums_b"] = core::RowSums(w.b);
    out["column_sums_b"] = core::ColumnSums(w.b);
  }
  out["nodes"] =
      topology.directed ? DirectedNodes(topology) : UndirectedNodes(topology);
  return out;
}

std::string YesNo(bool value) { return value ? "yes" : "no"; }

// "0.5 to 1.333"
std::string Range(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const std::string from = Fixed(*low, 4);
  const std::string to = Fixed(*high, 4);
  return from == to ? from : absl::StrCat(from, " to ", to);
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

std::string ToText(const core::RunPlan& plan, const Shown& shown) {
  const core::TopologySpec& spec = plan.topology;
  const core::PlanTopology& topology = shown.topology;
  std::vector<std::pair<std::string, std::string>> lines = {
      {"kind", spec.kind}};
  if (spec.kind == "erdos-renyi") {
    lines.emplace_back("edge probability", absl::StrCat(spec.edge_probability));
  } else if (spec.kind == "k-nearest" || spec.kind == "random-regular") {
    lines.emplace_back("degree", absl::StrCat(spec.degree));
  } else if (spec.kind == "random-geometric") {
    lines.emplace_back("radius", absl::StrCat(spec.radius));
  }
  if (shown.varies) {
    const std::string rounds =
        spec.every > 1 ? absl::StrCat(spec.every, " rounds") : "round";
    lines.emplace_back("changes",
                       spec.kind == "time-varying"
                           ? absl::StrCat(spec.edge_sets.size(),
                                          " sets of edges in turn, one "
                                          "every ",
                                          rounds)
                           : absl::StrCat("drawn afresh every ", rounds));
    lines.emplace_back("round", absl::StrCat(shown.round));
  }
  if (!topology.directed) lines.emplace_back("weights", spec.weights);
  lines.emplace_back(
      "edges",
      absl::StrCat(shown.edges, topology.directed ? ", directed" : ""));
  lines.emplace_back(topology.directed ? "strongly connected" : "connected",
                     YesNo(shown.connected));
  if (shown.varies) {
    lines.emplace_back("connected over rounds", YesNo(shown.window_connected));
  }
  lines.emplace_back("bipartite", YesNo(shown.bipartite));
  if (!topology.directed) {
    lines.emplace_back("spectral gap",
                       Fixed(core::SpectralGap(topology.weights), 4));
    return absl::StrCat(KeyValueLines(lines), "\n", UndirectedTable(topology));
  }
  const core::DirectedWeights& w = topology.directed_weights;
  lines.emplace_back("spectral gap of A",
                     Fixed(1 - core::SecondLargestModulus(w.a), 4));
  lines.emplace_back("spectral gap of B",
                     Fixed(1 - core::SecondLargestModulus(w.b), 4));
  lines.emplace_back("sums of A",
                     absl::StrCat("rows ", Range(core::RowSums(w.a)),
                                  ", columns ", Range(core::ColumnSums(w.a))));
  lines.emplace_back("sums of B",
                     absl::StrCat("rows ", Range(core::RowSums(w.b)),
                                  ", columns ", Range(core::ColumnSums(w.b))));
  return absl::StrCat(KeyValueLines(lines), "\n", DirectedTable(topology));
}

ExitCode Show(Context& context, const ShowCommand& command) {
  FleetPlan fleet;
  const ExitCode read = ReadExistingPlan(context, fleet);
  if (read != kOk) return read;
  const absl::StatusOr<Shown> shown = Look(*fleet.plan, command.round);
  if (!shown.ok()) return context.Fail(shown.status());
  context.Print(ToJsonValue(*fleet.plan, *shown),
                [&] { return ToText(*fleet.plan, *shown); });
  return context.Conclude(fleet.answers);
}

// "A,B" as an edge.
absl::Status AddEdge(absl::string_view flag, absl::string_view text,
                     core::EdgeList& out) {
  const size_t comma = text.find(',');
  if (comma == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, ": \"", text, "\" is no pair; write it like box-1,box-2"));
  }
  out.emplace_back(NodeId(std::string(text.substr(0, comma))),
                   NodeId(std::string(text.substr(comma + 1))));
  return absl::OkStatus();
}

// Edges that the command gives take the place of those that are there; those of
// another kind go.
absl::Status SetEdges(const SetCommand& command, core::TopologySpec& topology) {
  if (!command.edges.empty() && command.kind != "explicit") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--edge: only an explicit topology has edges of its own, not ",
        command.kind));
  }
  if (!command.edge_sets.empty() && command.kind != "time-varying") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--edge-set: only a time-varying topology has sets of edges, not ",
        command.kind));
  }
  if (!command.edges.empty() || command.kind != "explicit") {
    topology.edges.clear();
  }
  for (const std::string& edge : command.edges) {
    DFL_RETURN_IF_ERROR(AddEdge("--edge", edge, topology.edges));
  }
  if (!command.edge_sets.empty() || command.kind != "time-varying") {
    topology.edge_sets.clear();
  }
  for (const std::string& set : command.edge_sets) {
    core::EdgeList edges;
    for (const absl::string_view edge :
         absl::StrSplit(set, ' ', absl::SkipEmpty())) {
      DFL_RETURN_IF_ERROR(AddEdge("--edge-set", edge, edges));
    }
    topology.edge_sets.push_back(std::move(edges));
  }
  return absl::OkStatus();
}

absl::Status SetTopology(const SetCommand& command, core::RunPlan& plan) {
  core::TopologySpec& topology = plan.topology;
  const bool was_explicit = topology.weights == "explicit";
  DFL_RETURN_IF_ERROR(SetEdges(command, topology));
  if (topology.kind != command.kind) {
    // They mean nothing, or something else, to another kind.
    topology.directed = false;
    topology.every = 0;
  }
  topology.kind = command.kind;
  const auto take = [](const auto& given, auto& value) {
    if (given.has_value()) value = *given;
  };
  take(command.edge_probability, topology.edge_probability);
  take(command.degree, topology.degree);
  take(command.radius, topology.radius);
  take(command.every, topology.every);
  take(command.directed, topology.directed);
  if (!command.weights.empty()) topology.weights = command.weights;
  if (was_explicit && topology.weights != "explicit") topology.matrix.clear();
  // A name that nobody knows is a mistake of the command line.
  return core::ValidatePlan(plan);
}

}  // namespace

void AddTopology(CLI::App& app, Chosen& chosen) {
  CLI::App* noun = app.add_subcommand(
      "topology", "Who is whose neighbour, and how they mix");
  noun->require_subcommand(1);
  auto show = std::make_shared<ShowCommand>();
  CLI::App* look = noun->add_subcommand(
      "show", "Graph, weights and spectral gap of the plan");
  look->add_option("--round", show->round,
                   "Of which round, where the graph changes; default 0")
      ->check(CLI::NonNegativeNumber);
  look->callback([&chosen, show] {
    chosen = [show](Context& context) { return Show(context, *show); };
  });

  auto set = std::make_shared<SetCommand>();
  CLI::App* command = noun->add_subcommand("set", "Change the graph");
  command
      ->add_option("KIND", set->kind,
                   "complete, ring, star, path, grid, torus, bipartite, "
                   "k-nearest, erdos-renyi, random-regular, random-geometric, "
                   "explicit or time-varying")
      ->required();
  command->add_option("--edge-probability", set->edge_probability,
                      "erdos-renyi: of each edge, in (0, 1]");
  command->add_option("--degree", set->degree,
                      "k-nearest, random-regular: neighbours of each node");
  command->add_option(
      "--radius", set->radius,
      "random-geometric: the longest edge between points of the unit square");
  command->add_option("--every", set->every,
                      "Rounds until a drawn graph is drawn afresh, or until "
                      "the next set of edges; 0: never, or one");
  command->add_option("--directed", set->directed,
                      "explicit, time-varying: edges run from A to B only");
  command->add_option("--weights", set->weights,
                      "metropolis, laplacian, uniform or explicit");
  command
      ->add_option("--edge", set->edges,
                   "explicit: an edge A,B between members; repeat for all")
      ->allow_extra_args(false);
  command
      ->add_option("--edge-set", set->edge_sets,
                   "time-varying: the edges of one round, \"A,B C,D\"; repeat "
                   "for the others")
      ->allow_extra_args(false);
  AddApplyOptions(*command, set->options);
  command->callback([&chosen, set] {
    chosen = [set](Context& context) {
      return EditPlan(context, set->options, [&](core::RunPlan& plan) {
        return SetTopology(*set, plan);
      });
    };
  });
}

}  // namespace dfl::cli
