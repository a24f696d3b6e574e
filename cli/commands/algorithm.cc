// dflctl algorithm list|show|set. list, and show NAME, need no daemon.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/fleet_plan.h"
#include "cli/knob_noun.h"
#include "daemon/base/status_macros.h"
#include "daemon/console/catalogue.h"
#include "daemon/core/algorithms/catalogue.h"

namespace dfl::cli {
namespace {

struct SetCommand {
  std::string name;
  std::vector<std::string> changes;
  std::string node;
  ApplyOptions options;
};

ExitCode List(Context& context) {
  context.Print(console::CatalogueJson(), console::CatalogueText);
  return kOk;
}

ExitCode Show(Context& context, const std::string& name) {
  if (!name.empty()) {
    const auto info = core::BuiltInCatalogue().Find(name);
    if (!info.ok()) return context.Usage(info.status());
    context.Print(console::AlgorithmJson(**info, nullptr), [&] {
      return console::AlgorithmText(**info, nullptr, "dflctl");
    });
    return kOk;
  }
  FleetPlan fleet;
  const ExitCode read = ReadExistingPlan(context, fleet);
  if (read != kOk) return read;
  const auto info = core::BuiltInCatalogue().Find(fleet.plan->algorithm.name);
  if (!info.ok()) return context.Fail(info.status());
  Json json = console::AlgorithmJson(**info, &*fleet.plan);
  json["plan_version"] = fleet.plan->version;
  context.Print(json, [&] {
    return console::AlgorithmText(**info, &*fleet.plan, "dflctl");
  });
  return context.Conclude(fleet.answers);
}

absl::Status SetAlgorithm(Context& context, const SetCommand& command,
                          core::RunPlan& plan) {
  const auto info = core::BuiltInCatalogue().Find(command.name);
  if (!info.ok()) {
    return absl::InvalidArgumentError(info.status().message());
  }
  if (plan.algorithm.name != command.name) {
    // Knobs of another algorithm mean something else here.
    if (!command.node.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--node: all nodes run one algorithm, and the plan has ",
          plan.algorithm.name, "; change the algorithm without --node"));
    }
    size_t dropped = plan.algorithm.knobs.size();
    for (const auto& [node, overrides] : plan.nodes) {
      dropped += overrides.knobs.size();
    }
    plan.algorithm = {command.name, {}};
    plan.nodes.clear();
    if (dropped > 0) {
      context.Say(
          absl::StrCat("the knobs set for the former algorithm go "
                       "with it; those of ",
                       command.name, " begin at their defaults"));
    }
  }
  return SetKnobs(core::KnobNoun::kAlgorithm, command.changes, command.node,
                  plan);
}

}  // namespace

void AddAlgorithm(CLI::App& app, Chosen& chosen) {
  CLI::App* noun =
      AddCommand(app, "algorithm", "How nodes learn together", "show d-psgd");
  noun->require_subcommand(1);
  AddCommand(*noun, "list", "All there are; needs no daemon", "")
      ->callback([&chosen] { chosen = List; });

  auto name = std::make_shared<std::string>();
  CLI::App* show =
      AddCommand(*noun, "show",
                 "The plan's algorithm; with NAME any, and no daemon", "pame");
  show->add_option("NAME", *name, "e.g. pame");
  show->callback([&chosen, name] {
    chosen = [name](Context& context) { return Show(context, *name); };
  });

  auto set = std::make_shared<SetCommand>();
  CLI::App* command = AddCommand(
      *noun, "set", "Change the algorithm, or knobs of the one there is",
      "pame gamma=1.0005 --all gateways");
  command->add_option("NAME", set->name, "e.g. pame")->required();
  command->add_option("SETTING", set->changes,
                      "KNOB=VALUE, e.g. gamma=1.0005; \"default\" takes back");
  command->add_option("--node", set->node, "Knobs only for this member");
  AddApplyOptions(*command, set->options);
  console::AddHelp(*command, console::KnobsHelp(core::KnobNoun::kAlgorithm));
  command->callback([&chosen, set] {
    chosen = [set](Context& context) {
      return EditPlan(context, set->options, [&](core::RunPlan& plan) {
        return SetAlgorithm(context, *set, plan);
      });
    };
  });
}

}  // namespace dfl::cli
