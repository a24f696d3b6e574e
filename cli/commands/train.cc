// dflctl train start|pause|resume|stop.
#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/console.h"

namespace dfl::cli {
namespace {

ExitCode Train(Context& context, client::TrainAction action) {
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

}  // namespace

void AddTrain(CLI::App& app, Chosen& chosen) {
  CLI::App* noun =
      AddCommand(app, "train", "Start, pause, resume or stop training",
                 "pause --target gateway-07:7601");
  noun->require_subcommand(1);
  const auto add = [&](const char* name, const char* help,
                       client::TrainAction action) {
    AddCommand(*noun, name, help, "--all gateways")
        ->callback([&chosen, action] {
          chosen = [action](Context& context) {
            return Train(context, action);
          };
        });
  };
  add("start", "Start the plan that the nodes hold",
      client::TrainAction::kStart);
  add("pause", "Halt at the next step; neighbours are still answered",
      client::TrainAction::kPause);
  add("resume", "Go on after a pause", client::TrainAction::kResume);
  add("stop", "End the run here; neighbours are still answered",
      client::TrainAction::kStop);
}

}  // namespace dfl::cli
