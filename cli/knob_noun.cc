#include "cli/knob_noun.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/fleet_plan.h"
#include "cli/network/present.h"
#include "daemon/base/ids.h"
#include "daemon/base/names.h"
#include "daemon/base/status_macros.h"
#include "daemon/console/catalogue.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/participants.h"

namespace dfl::cli {
namespace {

absl::StatusOr<const core::KnobSpec*> FindKnob(
    const core::AlgorithmInfo& algorithm, core::KnobNoun noun,
    const std::string& name) {
  std::vector<std::string> known;
  for (const core::KnobSpec& spec : algorithm.knobs) {
    if (spec.name == name) {
      if (spec.noun == noun) return &spec;
      return absl::InvalidArgumentError(absl::StrCat(
          name, ": is no knob of ", console::NounName(noun),
          "; set it with `dflctl ", console::NounName(spec.noun), " set",
          spec.noun == core::KnobNoun::kAlgorithm
              ? absl::StrCat(" ", algorithm.name)
              : "",
          " ", name, "=...`"));
    }
    if (spec.noun == noun) known.push_back(spec.name);
  }
  if (known.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        algorithm.name, " has no knobs of ", console::NounName(noun),
        "; see `dflctl algorithm show ", algorithm.name, "`"));
  }
  return UnknownNameError("knob", name, known);
}

// Of a plan that follows the network a node may be no member yet.
absl::Status CheckNode(const core::RunPlan& plan, const std::string& node) {
  if (core::FollowsView(plan)) {
    return Annotate(ValidateNodeName(node), "--node");
  }
  std::vector<std::string> members;
  for (const core::MemberSpec& member : plan.members) {
    members.push_back(member.node.name());
  }
  if (std::find(members.begin(), members.end(), node) != members.end()) {
    return absl::OkStatus();
  }
  return UnknownNameError("--node", node, members);
}

struct SetCommand {
  std::vector<std::string> changes;
  std::string node;
  ApplyOptions options;
};

ExitCode Show(Context& context, core::KnobNoun noun) {
  FleetPlan fleet;
  const ExitCode read = ReadExistingPlan(context, fleet);
  if (read != kOk) return read;
  const auto algorithm =
      core::BuiltInCatalogue().Find(fleet.plan->algorithm.name);
  if (!algorithm.ok()) return context.Fail(algorithm.status());
  const core::RunPlan* plan = &*fleet.plan;
  const Json json{{"algorithm", plan->algorithm.name},
                  {"plan_version", plan->version},
                  {"knobs", console::KnobsJson(**algorithm, noun, plan)}};
  context.Print(json, [&] {
    const Table table = console::KnobsTable(**algorithm, noun, plan);
    return table.empty()
               ? absl::StrCat(plan->algorithm.name, " has no knobs of ",
                              console::NounName(noun), "\n")
               : table.ToString();
  });
  return context.Conclude(fleet.answers);
}

}  // namespace

absl::Status SetKnobs(core::KnobNoun noun,
                      const std::vector<std::string>& changes,
                      const std::string& node, core::RunPlan& plan) {
  DFL_ASSIGN_OR_RETURN(const core::AlgorithmInfo* algorithm,
                       core::BuiltInCatalogue().Find(plan.algorithm.name));
  core::KnobValues* values = &plan.algorithm.knobs;
  const NodeId id(node);
  if (!node.empty()) {
    DFL_RETURN_IF_ERROR(CheckNode(plan, node));
    values = &plan.nodes[id].knobs;
  }
  for (const std::string& change : changes) {
    const size_t equals = change.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", change,
                       "\" is no KNOB=VALUE; write it like nu=0.5, see "
                       "`dflctl algorithm show ",
                       algorithm->name, "`"));
    }
    DFL_ASSIGN_OR_RETURN(const core::KnobSpec* spec,
                         FindKnob(*algorithm, noun, change.substr(0, equals)));
    const std::string text = change.substr(equals + 1);
    if (text == "default") {
      values->erase(spec->name);
      continue;
    }
    DFL_ASSIGN_OR_RETURN((*values)[spec->name], spec->Parse(text));
  }
  if (!node.empty() && values->empty()) plan.nodes.erase(id);
  return absl::OkStatus();
}

void AddKnobNoun(CLI::App& app, const char* name, const char* help,
                 const char* example, core::KnobNoun noun, Chosen& chosen) {
  CLI::App* group = AddCommand(
      app, name, help,
      absl::StrCat("set --node gateway-07 ", example, " --all gateways"));
  group->require_subcommand(1);
  AddCommand(*group, "show", "Values of the newest plan, for each node",
             "--target gateway-07:7601")
      ->callback([&chosen, noun] {
        chosen = [noun](Context& context) { return Show(context, noun); };
      });
  auto set = std::make_shared<SetCommand>();
  CLI::App* command = AddCommand(
      *group, "set",
      "Change them for all nodes, or for one; \"default\" takes back",
      absl::StrCat(example, " --all gateways"));
  // CLI11 2.4 allows no "=" in a name.
  command
      ->add_option("SETTING", set->changes,
                   absl::StrCat("KNOB=VALUE, e.g. ", example))
      ->required();
  command->add_option("--node", set->node, "Only for this member");
  AddApplyOptions(*command, set->options);
  console::AddHelp(*command, console::KnobsHelp(noun));
  command->callback([&chosen, set, noun] {
    chosen = [set, noun](Context& context) {
      return EditPlan(context, set->options, [&](core::RunPlan& plan) {
        if (!set->node.empty() && core::FollowsView(plan)) {
          WarnOfStranger(context, set->node);
        }
        return SetKnobs(noun, set->changes, set->node, plan);
      });
    };
  });
}

}  // namespace dfl::cli
