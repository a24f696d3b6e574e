// dflctl topology show|set.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fleet_plan.h"
#include "cli/graph_picture.h"
#include "cli/network/present.h"
#include "daemon/base/status_macros.h"
#include "daemon/console/topology_text.h"
#include "daemon/core/plan/check_plan.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::cli {
namespace {

struct ShowCommand {
  int64_t round = 0;
  bool draw = false;
  std::string svg;
  std::string png;
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

// Draws the graph into the files that are wanted, and says so.
absl::Status DrawFiles(Context& context, const ShowCommand& command,
                       const std::string& dot) {
  const std::pair<const char*, const std::string&> files[] = {
      {"svg", command.svg}, {"png", command.png}};
  for (const auto& [format, file] : files) {
    if (file.empty()) continue;
    DFL_ASSIGN_OR_RETURN(const std::string picture, DrawGraph(dot, format));
    DFL_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> out,
                         OutputFile::Open(file));
    DFL_RETURN_IF_ERROR(out->Append(picture));
    DFL_RETURN_IF_ERROR(out->Commit());
    context.Say(absl::StrCat("the graph is drawn in ", file));
  }
  return absl::OkStatus();
}

ExitCode Show(Context& context, const ShowCommand& command) {
  FleetPlan fleet;
  const ExitCode read = ReadExistingPlan(context, fleet);
  if (read != kOk) return read;
  core::RunPlan& plan = *fleet.plan;
  const absl::Status resolved = ResolveMembers(context, plan);
  if (!resolved.ok()) return context.Fail(resolved);
  const absl::StatusOr<console::TopologyReport> report =
      console::ReportTopology(plan, command.round);
  if (!report.ok()) return context.Fail(report.status());
  const absl::Status drawn =
      DrawFiles(context, command, GraphDot(*report, core::KindInForce(plan)));
  if (!drawn.ok()) return context.Fail(drawn);
  context.Print(console::TopologyJson(plan, *report), [&] {
    const std::string text = console::TopologyText(plan, *report);
    return command.draw ? absl::StrCat(text, "\n", GraphText(*report)) : text;
  });
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
  CLI::App* noun =
      AddCommand(app, "topology", "Who is whose neighbour, and how they mix",
                 "set ring --all gateways");
  noun->require_subcommand(1);
  auto show = std::make_shared<ShowCommand>();
  CLI::App* look =
      AddCommand(*noun, "show", "Graph, weights and spectral gap of the plan",
                 "--target gateway-07:7601");
  look->add_option("--round", show->round,
                   "Of which round, where the graph changes; default 0")
      ->check(CLI::NonNegativeNumber);
  look->add_flag("--draw", show->draw, "Also draw the graph in characters");
  look->add_option("--svg", show->svg,
                   "Also draw it in this file, by Graphviz");
  look->add_option("--png", show->png, "The same as PNG");
  look->callback([&chosen, show] {
    chosen = [show](Context& context) { return Show(context, *show); };
  });

  auto set = std::make_shared<SetCommand>();
  CLI::App* command =
      AddCommand(*noun, "set", "Change the graph",
                 "erdos-renyi --edge-probability 0.4 --all gateways");
  command
      ->add_option("KIND", set->kind,
                   "auto, complete, ring, star, path, grid, torus, bipartite, "
                   "k-nearest, hashed, erdos-renyi, random-regular, "
                   "random-geometric, explicit or time-varying")
      ->required();
  command->add_option("--edge-probability", set->edge_probability,
                      "erdos-renyi: of each edge, in (0, 1]");
  command->add_option("--degree", set->degree,
                      "k-nearest, hashed, random-regular: neighbours of each "
                      "node");
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
