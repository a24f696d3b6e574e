// dflctl version: this program, and each daemon.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/console.h"

namespace dfl::cli {
namespace {

ExitCode Version(Context& context) {
  auto answers = context.AskAll<client::Version>(
      [](client::ControlClient& daemon) { return daemon.Version(); });
  // A daemon of another contract answers, and is not understood in full.
  for (auto& answer : answers) {
    if (answer.result.ok() &&
        answer.result->control_protocol > client::kControlProtocolVersion) {
      context.Warn(absl::StrCat(
          answer.target, " speaks version ", answer.result->control_protocol,
          " of the control contract, dflctl ", client::kControlProtocolVersion,
          ": update dflctl to see everything"));
    }
  }
  Json json = Context::TargetsJson<client::Version>(
      answers, [](const client::Version& version, Json& entry) {
        entry["version"] = version.version;
        entry["node"] = version.node;
        entry["control_protocol"] = version.control_protocol;
        entry["peer_protocol"] = version.peer_protocol;
        entry["oldest_peer_protocol"] = version.oldest_peer_protocol;
        entry["libraries"] = version.libraries;
      });
  Json document{{"dflctl",
                 {{"version", DFL_VERSION},
                  {"control_protocol", client::kControlProtocolVersion}}}};
  document.update(json);
  context.Print(document, [&] {
    Table table(
        {"PROGRAM", "NODE", "VERSION", "CONTROL", "PEERS", "LIBRARIES"});
    table.Add({"dflctl", "-", DFL_VERSION,
               absl::StrCat(client::kControlProtocolVersion), "-", ""});
    for (const auto& answer : answers) {
      if (!answer.result.ok()) continue;
      const client::Version& version = *answer.result;
      table.Add({"dfld", version.node, version.version,
                 absl::StrCat(version.control_protocol),
                 absl::StrCat(version.oldest_peer_protocol, "-",
                              version.peer_protocol),
                 absl::StrJoin(version.libraries, ", ")});
    }
    return table.ToString();
  });
  return context.Conclude(answers);
}

}  // namespace

void AddVersion(CLI::App& app, Chosen& chosen) {
  AddCommand(app, "version", "Versions of dflctl and of each daemon",
             "--all gateways")
      ->callback([&chosen] { chosen = Version; });
}

}  // namespace dfl::cli
