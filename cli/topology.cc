// dflctl topology show|set.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/fleet_plan.h"
#include "cli/table.h"
#include "cli/units.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/mixing.h"
#include "daemon/core/plan_topology.h"

namespace dfl::cli {
namespace {

struct SetCommand {
  std::string kind;
  std::optional<double> edge_probability;
  std::string weights;
  std::vector<std::string> edges;
  ApplyOptions options;
};

Json ToJsonValue(const core::RunPlan& plan, const core::PlanTopology& derived) {
  Json nodes = Json::array();
  for (int64_t i = 0; i < derived.graph.size(); ++i) {
    Json neighbours = Json::array();
    for (const int64_t j : derived.graph.neighbours(i)) {
      neighbours.push_back(Json{{"node", derived.members[j].name()},
                                {"weight", derived.weights[i][j]}});
    }
    nodes.push_back(Json{{"node", derived.members[i].name()},
                         {"self_weight", derived.weights[i][i]},
                         {"neighbours", std::move(neighbours)}});
  }
  return Json{{"plan_version", plan.version},
              {"kind", plan.topology.kind},
              {"edge_probability", plan.topology.edge_probability},
              {"weights", plan.topology.weights},
              {"edges", derived.graph.Edges().size()},
              {"connected", derived.graph.IsConnected()},
              {"bipartite", derived.graph.IsBipartite()},
              {"spectral_gap", core::SpectralGap(derived.weights)},
              {"nodes", std::move(nodes)}};
}

std::string ToText(const core::RunPlan& plan,
                   const core::PlanTopology& derived) {
  std::vector<std::pair<std::string, std::string>> lines = {
      {"kind", plan.topology.kind}};
  if (plan.topology.kind == "erdos-renyi") {
    lines.emplace_back("edge probability",
                       absl::StrCat(plan.topology.edge_probability));
  }
  lines.emplace_back("weights", plan.topology.weights);
  lines.emplace_back("edges", absl::StrCat(derived.graph.Edges().size()));
  lines.emplace_back("connected", derived.graph.IsConnected() ? "yes" : "no");
  lines.emplace_back("spectral gap",
                     Fixed(core::SpectralGap(derived.weights), 4));
  Table table({"NODE", ">OWN WEIGHT", "NEIGHBOURS"});
  for (int64_t i = 0; i < derived.graph.size(); ++i) {
    std::vector<std::string> neighbours;
    for (const int64_t j : derived.graph.neighbours(i)) {
      neighbours.push_back(absl::StrCat(derived.members[j].name(), " (",
                                        Fixed(derived.weights[i][j], 3), ")"));
    }
    table.Add({derived.members[i].name(), Fixed(derived.weights[i][i], 3),
               absl::StrJoin(neighbours, ", ")});
  }
  return absl::StrCat(KeyValueLines(lines), "\n", table.ToString());
}

ExitCode Show(Context& context) {
  FleetPlan fleet;
  const ExitCode read = ReadExistingPlan(context, fleet);
  if (read != kOk) return read;
  const absl::StatusOr<core::PlanTopology> derived =
      core::DeriveTopology(*fleet.plan);
  if (!derived.ok()) return context.Fail(derived.status());
  context.Print(ToJsonValue(*fleet.plan, *derived),
                [&] { return ToText(*fleet.plan, *derived); });
  return context.Conclude(fleet.answers);
}

absl::Status SetTopology(const SetCommand& command, core::RunPlan& plan) {
  core::TopologySpec& topology = plan.topology;
  const bool was_explicit = topology.weights == "explicit";
  if (!command.edges.empty() && command.kind != "explicit") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--edge: only an explicit topology has edges of its own, not ",
        command.kind));
  }
  topology.kind = command.kind;
  if (command.edge_probability.has_value()) {
    topology.edge_probability = *command.edge_probability;
  }
  if (!command.edges.empty() || command.kind != "explicit") {
    topology.edges.clear();
  }
  for (const std::string& edge : command.edges) {
    const size_t comma = edge.find(',');
    if (comma == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--edge: \"", edge, "\" is no pair; write it like box-1,box-2"));
    }
    topology.edges.emplace_back(NodeId(edge.substr(0, comma)),
                                NodeId(edge.substr(comma + 1)));
  }
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
  noun->add_subcommand("show", "Graph, weights and spectral gap of the plan")
      ->callback([&chosen] { chosen = Show; });

  auto set = std::make_shared<SetCommand>();
  CLI::App* command = noun->add_subcommand("set", "Change the graph");
  command
      ->add_option("KIND", set->kind,
                   "complete, ring, star, grid, erdos-renyi or explicit")
      ->required();
  command->add_option("--edge-probability", set->edge_probability,
                      "erdos-renyi: of each edge, in (0, 1]");
  command->add_option("--weights", set->weights,
                      "metropolis, laplacian, uniform or explicit");
  command
      ->add_option("--edge", set->edges,
                   "explicit: an edge A,B between members; repeat for all")
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
