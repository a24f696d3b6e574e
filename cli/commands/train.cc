// dflctl train start|pause|resume|stop: of the targets, or as an order to the
// network: to all nodes, or to those that a name or a label selects.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fleet_plan.h"
#include "cli/signing.h"
#include "daemon/base/ids.h"
#include "daemon/base/status_macros.h"
#include "daemon/records/record_content.h"

namespace dfl::cli {
namespace {

using client::TrainAction;

struct TrainCommand {
  bool network = false;
  std::vector<std::string> nodes;
  std::vector<std::string> labels;

  // Rather than to the targets alone.
  bool to_network() const {
    return network || !nodes.empty() || !labels.empty();
  }
};

ExitCode TrainTargets(Context& context, TrainAction action) {
  const auto answers = context.AskAll<client::Phase>(
      [action](client::ControlClient& daemon) { return daemon.Train(action); });
  context.Print(
      Context::TargetsJson<client::Phase>(
          answers,
          [](const client::Phase& phase, Json& entry) {
            entry["phase"] = client::PhaseName(phase);
          }),
      [&] {
        Table table({"TARGET", "PHASE"});
        for (const auto& answer : answers) {
          if (!answer.result.ok()) continue;
          table.Add({answer.target, client::PhaseName(*answer.result)});
        }
        return table.empty() ? "" : table.ToString();
      });
  return context.Conclude(answers);
}

runtime::DesiredPhase WantedOf(TrainAction action) {
  switch (action) {
    case TrainAction::kPause:
      return runtime::DesiredPhase::kPaused;
    case TrainAction::kStop:
      return runtime::DesiredPhase::kStopped;
    case TrainAction::kStart:
    case TrainAction::kResume:
      break;
  }
  return runtime::DesiredPhase::kTraining;
}

void WarnOfStrangers(Context& context, const core::RunPlan& plan,
                     const std::vector<std::string>& nodes) {
  // Who takes part may follow who is there.
  if (plan.members.empty()) return;
  for (const std::string& node : nodes) {
    bool member = false;
    for (const core::MemberSpec& spec : plan.members) {
      member = member || spec.node.name() == node;
    }
    if (!member) {
      context.Warn(absl::StrCat(node, " is no member of the plan"));
    }
  }
}

ExitCode TrainNetwork(Context& context, TrainAction action,
                      const TrainCommand& command) {
  for (const std::string& node : command.nodes) {
    const absl::Status valid = ValidateNodeName(node);
    if (!valid.ok()) return context.Usage(Annotate(valid, "--node"));
  }
  for (const std::string& label : command.labels) {
    const absl::Status valid = records::ValidateLabel(label);
    if (!valid.ok()) return context.Usage(Annotate(valid, "--label"));
  }
  const absl::StatusOr<Signer> signer = Signer::ForTargets(context);
  if (!signer.ok()) return context.Fail(signer.status());
  FleetPlan fleet;
  const ExitCode read = ReadExistingPlan(context, fleet);
  if (read != kOk) return read;
  WarnOfStrangers(context, *fleet.plan, command.nodes);
  records::PhaseOrder order;
  order.phase = WantedOf(action);
  order.nodes = command.nodes;
  order.labels = command.labels;
  order.run_id = fleet.plan->run_id;
  return SignAndPut(context, *signer, records::RecordKind::kPhase, "",
                    records::ToContent(order), [&](Json& entry) {
                      entry["nodes"] = command.nodes;
                      entry["labels"] = command.labels;
                      entry["run_id"] = order.run_id;
                    });
}

}  // namespace

void AddTrain(CLI::App& app, Chosen& chosen) {
  CLI::App* noun =
      AddCommand(app, "train", "Start, pause, resume or stop training",
                 "pause --target gateway-07:7601");
  noun->require_subcommand(1);
  auto parsed = std::make_shared<TrainCommand>();
  const auto add = [&](const char* name, const char* help, TrainAction action) {
    CLI::App* command = AddCommand(*noun, name, help, "--network");
    command->add_flag("--network", parsed->network,
                      "An order to all nodes of the network, which they pass "
                      "on; without it only the targets obey");
    command
        ->add_option("--node", parsed->nodes,
                     "An order to these nodes of the network: a,b")
        ->delimiter(',');
    command
        ->add_option("--label", parsed->labels,
                     "An order to the nodes that have one of these labels: "
                     "site=north,site=south")
        ->delimiter(',');
    command->callback([&chosen, parsed, action] {
      chosen = [parsed, action](Context& context) {
        return parsed->to_network() ? TrainNetwork(context, action, *parsed)
                                    : TrainTargets(context, action);
      };
    });
  };
  add("start", "Start the plan that the nodes hold", TrainAction::kStart);
  add("pause", "Halt at the next step; neighbours are still answered",
      TrainAction::kPause);
  add("resume", "Go on after a pause", TrainAction::kResume);
  add("stop", "End the run here; neighbours are still answered",
      TrainAction::kStop);
}

}  // namespace dfl::cli
