// dflctl algorithm list|show|set. list, and show NAME, need no daemon.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/fleet_plan.h"
#include "cli/knob_noun.h"
#include "daemon/base/status_macros.h"

namespace dfl::cli {
namespace {

struct SetCommand {
  std::string name;
  std::vector<std::string> changes;
  std::string node;
  ApplyOptions options;
};

const char* ExchangeName(core::Exchange exchange) {
  switch (exchange) {
    case core::Exchange::kNone:
      return "none";
    case core::Exchange::kPull:
      return "pull";
    case core::Exchange::kPush:
      return "push";
  }
  return "none";
}

ExitCode List(Context& context) {
  Json list = Json::array();
  Table table({"ALGORITHM", "EXCHANGE", "SUMMARY"});
  for (const core::AlgorithmInfo& info : core::AlgorithmCatalogue()) {
    list.push_back(Json{{"name", info.name},
                        {"exchange", ExchangeName(info.exchange)},
                        {"summary", info.summary},
                        {"source", info.source}});
    table.Add({info.name, ExchangeName(info.exchange), info.summary});
  }
  context.Print(Json{{"algorithms", std::move(list)}},
                [&] { return table.ToString(); });
  return kOk;
}

constexpr core::KnobNoun kNouns[] = {core::KnobNoun::kAlgorithm,
                                     core::KnobNoun::kParticipation,
                                     core::KnobNoun::kPeriod};

Json InfoJson(const core::AlgorithmInfo& info, const core::RunPlan* plan) {
  Json knobs = Json::array();
  for (const core::KnobNoun noun : kNouns) {
    for (Json& knob : KnobsJson(info, noun, plan)) knobs.push_back(knob);
  }
  return Json{{"name", info.name},
              {"summary", info.summary},
              {"source", info.source},
              {"caveats", info.caveats},
              {"exchange", ExchangeName(info.exchange)},
              {"lock_step", info.lock_step},
              {"extra_vectors", info.extra_vectors},
              {"cost", info.cost},
              {"knobs", std::move(knobs)}};
}

std::string InfoText(const core::AlgorithmInfo& info,
                     const core::RunPlan* plan) {
  std::vector<std::pair<std::string, std::string>> lines = {
      {"name", info.name},
      {"summary", info.summary},
      {"source", info.source},
      {"exchange", ExchangeName(info.exchange)},
      {"memory", absl::StrCat(info.extra_vectors,
                              " vectors beside parameters and gradient")},
      {"cost", info.cost}};
  if (!info.caveats.empty()) lines.emplace_back("mind", info.caveats);
  std::string out = KeyValueLines(lines);
  static constexpr const char* kTitles[] = {
      "dflctl algorithm set", "dflctl participation set", "dflctl period set"};
  for (size_t i = 0; i < 3; ++i) {
    const Table table = KnobsTable(info, kNouns[i], plan);
    if (table.empty()) continue;
    absl::StrAppend(&out, "\n", kTitles[i], ":\n", table.ToString());
  }
  return out;
}

ExitCode Show(Context& context, const std::string& name) {
  if (!name.empty()) {
    const auto info = core::FindAlgorithm(name);
    if (!info.ok()) return context.Usage(info.status());
    context.Print(InfoJson(**info, nullptr),
                  [&] { return InfoText(**info, nullptr); });
    return kOk;
  }
  FleetPlan fleet;
  const ExitCode read = ReadExistingPlan(context, fleet);
  if (read != kOk) return read;
  const auto info = core::FindAlgorithm(fleet.plan->algorithm.name);
  if (!info.ok()) return context.Fail(info.status());
  Json json = InfoJson(**info, &*fleet.plan);
  json["plan_version"] = fleet.plan->version;
  context.Print(json, [&] { return InfoText(**info, &*fleet.plan); });
  return context.Conclude(fleet.answers);
}

absl::Status SetAlgorithm(Context& context, const SetCommand& command,
                          core::RunPlan& plan) {
  const auto info = core::FindAlgorithm(command.name);
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
  CLI::App* noun = app.add_subcommand("algorithm", "How nodes learn together");
  noun->require_subcommand(1);
  noun->add_subcommand("list", "All there are; needs no daemon")
      ->callback([&chosen] { chosen = List; });

  auto name = std::make_shared<std::string>();
  CLI::App* show = noun->add_subcommand(
      "show", "The plan's algorithm; with NAME any, and no daemon");
  show->add_option("NAME", *name, "e.g. pame");
  show->callback([&chosen, name] {
    chosen = [name](Context& context) { return Show(context, *name); };
  });

  auto set = std::make_shared<SetCommand>();
  CLI::App* command = noun->add_subcommand(
      "set", "Change the algorithm, or knobs of the one there is");
  command->add_option("NAME", set->name, "e.g. pame")->required();
  command->add_option("KNOB=VALUE", set->changes,
                      "e.g. gamma=1.0005; \"default\" takes back");
  command->add_option("--node", set->node, "Knobs only for this member");
  AddApplyOptions(*command, set->options);
  command->callback([&chosen, set] {
    chosen = [set](Context& context) {
      return EditPlan(context, set->options, [&](core::RunPlan& plan) {
        return SetAlgorithm(context, *set, plan);
      });
    };
  });
}

}  // namespace dfl::cli
