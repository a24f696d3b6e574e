// dflctl peer list|add|remove.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/status_json.h"
#include "cli/status_table.h"

namespace dfl::cli {
namespace {

std::string AddressTable(const client::Peers& peers) {
  Table table({"ADDRESS", "NODE", "LINK", "FROM", "LAST ERROR"});
  for (const client::PeerAddress& address : peers.addresses) {
    table.Add({address.address, address.node.empty() ? "-" : address.node,
               address.linked ? "up" : "down", address.origin,
               address.last_error});
  }
  return table.ToString();
}

ExitCode List(Context& context) {
  const auto answers = context.AskAll<client::Peers>(
      [](client::ControlClient& daemon) { return daemon.Peers(); });
  context.Print(Context::TargetsJson<client::Peers>(
                    answers,
                    [](const client::Peers& peers, Json& entry) {
                      entry["addresses"] = Json::array();
                      for (const auto& address : peers.addresses) {
                        entry["addresses"].push_back(ToJsonValue(address));
                      }
                      entry["peers"] = Json::array();
                      for (const auto& peer : peers.peers) {
                        entry["peers"].push_back(ToJsonValue(peer));
                      }
                    }),
                [&] {
                  std::string out;
                  for (const auto& answer : answers) {
                    if (!answer.result.ok()) continue;
                    if (!out.empty()) out += "\n";
                    if (answers.size() > 1) out += answer.target + ":\n";
                    absl::StrAppend(&out, AddressTable(*answer.result), "\n",
                                    PeerTable(answer.result->peers).ToString());
                  }
                  return out;
                });
  return context.Conclude(answers);
}

ExitCode Add(Context& context, const std::string& address) {
  const auto answers = context.AskAll<bool>(
      [&](client::ControlClient& daemon) { return daemon.AddPeer(address); });
  context.Print(Context::TargetsJson<bool>(answers,
                                           [&](const bool& added, Json& entry) {
                                             entry["address"] = address;
                                             entry["added"] = added;
                                           }),
                [&] {
                  std::string out;
                  for (const auto& answer : answers) {
                    if (!answer.result.ok()) continue;
                    absl::StrAppend(&out, answer.target, ": ",
                                    *answer.result ? "dials " : "dialled ",
                                    address, *answer.result ? "" : " already",
                                    "\n");
                  }
                  return out;
                });
  return context.Conclude(answers);
}

ExitCode Remove(Context& context, const std::string& address) {
  const auto answers = context.AskAll<bool>(
      [&](client::ControlClient& daemon) -> absl::StatusOr<bool> {
        const absl::Status status = daemon.RemovePeer(address);
        if (!status.ok()) return status;
        return true;
      });
  context.Print(Context::TargetsJson<bool>(answers,
                                           [&](const bool&, Json& entry) {
                                             entry["address"] = address;
                                           }),
                [&] {
                  std::string out;
                  for (const auto& answer : answers) {
                    if (!answer.result.ok()) continue;
                    absl::StrAppend(&out, answer.target, ": dials ", address,
                                    " no more\n");
                  }
                  return out;
                });
  return context.Conclude(answers);
}

}  // namespace

void AddPeer(CLI::App& app, Chosen& chosen) {
  CLI::App* noun =
      AddCommand(app, "peer", "Whom a node dials", "add gateway-08:7600");
  noun->require_subcommand(1);
  AddCommand(*noun, "list", "Addresses dialled, and peers known by name",
             "--all gateways")
      ->callback([&chosen] { chosen = List; });
  auto address = std::make_shared<std::string>();
  const auto with_address = [&](const char* name, const char* help, auto run) {
    CLI::App* command = AddCommand(*noun, name, help,
                                   "gateway-08:7600 --target gateway-07:7601");
    command->add_option("ADDRESS", *address, "host:port, [IPv6]:port")
        ->required();
    command->callback([&chosen, address, run] {
      chosen = [address, run](Context& context) {
        return run(context, *address);
      };
    });
  };
  with_address("add", "Dial an address, after a restart too", Add);
  with_address("remove",
               "Stop dialling an address and cut its link; one of the "
               "settings is back after a restart",
               Remove);
}

}  // namespace dfl::cli
