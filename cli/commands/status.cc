// dflctl status: what each node is doing now.
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/status_json.h"
#include "cli/status_table.h"

namespace dfl::cli {
namespace {

std::string StatusText(const std::vector<Answer<client::DaemonStatus>>& answers,
                       bool with_peers) {
  Table table(StatusTitles());
  std::string peers;
  for (const auto& answer : answers) {
    if (!answer.result.ok()) continue;
    table.Add(StatusRow(*answer.result));
    if (with_peers && !answer.result->node.peers.empty()) {
      absl::StrAppend(&peers, "\nPeers of ",
                      Printable(answer.result->node.node), ":\n",
                      PeerTable(answer.result->node.peers).ToString());
    }
  }
  return table.empty() ? "" : table.ToString() + peers;
}

ExitCode Status(Context& context, bool with_peers) {
  const auto answers = context.AskAll<client::DaemonStatus>(
      [](client::ControlClient& daemon) { return daemon.Status(); });
  context.Print(
      Context::TargetsJson<client::DaemonStatus>(
          answers, [](const client::DaemonStatus& status,
                      Json& entry) { entry["status"] = ToJsonValue(status); }),
      [&] { return StatusText(answers, with_peers); });
  for (const auto& answer : answers) {
    if (!answer.result.ok()) continue;
    for (const std::string& note : StatusNotes(*answer.result)) {
      context.Warn(note);
    }
  }
  return context.Conclude(answers);
}

}  // namespace

void AddStatus(CLI::App& app, Chosen& chosen) {
  CLI::App* command = AddCommand(
      app, "status", "What each node is doing: step, loss, plan, neighbours",
      "--all gateways --peers");
  auto peers = std::make_shared<bool>(false);
  command->add_flag("-p,--peers", *peers, "Also a table of each node's peers");
  command->callback([&chosen, peers] {
    chosen = [peers](Context& context) { return Status(context, *peers); };
  });
}

}  // namespace dfl::cli
