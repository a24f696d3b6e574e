// dflctl train start|pause|resume|stop: of the targets, or as an order to the
// network: to all nodes, or to those that a name or a label selects.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fleet_plan.h"
#include "cli/network/selection.h"
#include "cli/signing.h"
#include "daemon/base/ids.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/plan/plan_topology.h"
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

// An order waits for a node that is away; one that nobody knows may be a slip.
void WarnOfStrangers(Context& context, const core::RunPlan& plan,
                     const TrainCommand& command) {
  for (const std::string& node : command.nodes) {
    if (!plan.members.empty() && !core::PlaceOf(plan, NodeId(node))) {
      context.Warn(absl::StrCat(node, " is no member of the plan"));
    }
  }
  const auto table = AskOne<client::MemberTable>(
      context,
      [](client::ControlClient& daemon) { return daemon.Members({}); });
  if (!table.ok() || table->membership_off) return;
  const auto warn = [&](const std::string& what, auto is_meant) {
    const auto& members = table->members;
    if (std::none_of(members.begin(), members.end(), is_meant)) {
      context.Warn(absl::StrCat("no member that is known now ", what));
    }
  };
  for (const std::string& node : command.nodes) {
    warn(absl::StrCat("is called ", node),
         [&](const client::Member& member) { return member.node == node; });
  }
  for (const std::string& label : command.labels) {
    const size_t at = label.find('=');
    warn(absl::StrCat("has the label ", label),
         [&](const client::Member& member) {
           const auto found = member.labels.find(label.substr(0, at));
           return found != member.labels.end() &&
                  found->second == label.substr(at + 1);
         });
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
  WarnOfStrangers(context, *fleet.plan, command);
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
