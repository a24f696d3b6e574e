// dflctl peer list|add|remove|ban|unban.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/signing.h"
#include "cli/status_json.h"
#include "cli/status_table.h"
#include "daemon/base/status_macros.h"
#include "daemon/records/record_content.h"
#include "daemon/tls/identity.h"

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

// Of a daemon: whom it dials and knows, and whom it shuts out.
struct PeerList {
  client::Peers peers;
  std::vector<std::string> banned;
};

ExitCode List(Context& context) {
  const auto answers = context.AskAll<PeerList>(
      [](client::ControlClient& daemon) -> absl::StatusOr<PeerList> {
        DFL_ASSIGN_OR_RETURN(client::Peers peers, daemon.Peers());
        DFL_ASSIGN_OR_RETURN(client::DaemonStatus status, daemon.Status());
        return PeerList{std::move(peers), std::move(status.banned)};
      });
  context.Print(Context::TargetsJson<PeerList>(
                    answers,
                    [](const PeerList& list, Json& entry) {
                      entry["addresses"] = Json::array();
                      for (const auto& address : list.peers.addresses) {
                        entry["addresses"].push_back(ToJsonValue(address));
                      }
                      entry["peers"] = Json::array();
                      for (const auto& peer : list.peers.peers) {
                        entry["peers"].push_back(ToJsonValue(peer));
                      }
                      entry["banned"] = list.banned;
                    }),
                [&] {
                  std::string out;
                  for (const auto& answer : answers) {
                    if (!answer.result.ok()) continue;
                    if (!out.empty()) out += "\n";
                    if (answers.size() > 1) out += answer.target + ":\n";
                    const PeerList& list = *answer.result;
                    absl::StrAppend(&out, AddressTable(list.peers), "\n",
                                    PeerTable(list.peers.peers).ToString());
                    for (const std::string& banned : list.banned) {
                      absl::StrAppend(&out, "banned: ", Printable(banned),
                                      "\n");
                    }
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

struct BanCommand {
  std::string who;
  std::string reason;
};

// NAME is a node.
absl::StatusOr<tls::Identity> Named(const std::string& who,
                                    const std::string& cluster) {
  tls::Identity identity{cluster, tls::Role::kNode, who};
  const size_t slash = who.find('/');
  if (slash != std::string::npos) {
    DFL_ASSIGN_OR_RETURN(identity.role, tls::ParseRole(who.substr(0, slash)));
    identity.name = who.substr(slash + 1);
  }
  DFL_RETURN_IF_ERROR(tls::Validate(identity));
  return identity;
}

ExitCode Ban(Context& context, const BanCommand& command, bool banned) {
  const absl::StatusOr<Signer> signer = RequireSigner(
      context,
      "whoever reaches an insecure node is believed, so nobody can be shut "
      "out; set `security: tls`");
  if (!signer.ok()) return context.Fail(signer.status());
  const absl::StatusOr<tls::Identity> identity =
      Named(command.who, signer->identity().cluster);
  if (!identity.ok()) return context.Usage(identity.status());
  if (banned && *identity == signer->identity()) {
    return context.Usage(absl::InvalidArgumentError(absl::StrCat(
        tls::ToUri(*identity), " is you; another operator can ban you")));
  }
  const std::string subject = tls::ToUri(*identity);
  return SignAndPut(
      context, *signer, records::RecordKind::kBan, subject,
      records::ToContent(records::BanOrder{banned, command.reason}),
      [&](Json& entry) {
        entry["subject"] = subject;
        entry["banned"] = banned;
        entry["reason"] = command.reason;
      });
}

void AddBans(CLI::App& noun, Chosen& chosen) {
  auto parsed = std::make_shared<BanCommand>();
  for (const bool banned : {true, false}) {
    CLI::App* command =
        banned
            ? AddCommand(noun, "ban",
                         "Shut a node or a person out of the network: a "
                         "signed order, which the nodes pass on",
                         "gateway-08 --reason stolen")
            : AddCommand(noun, "unban", "Let somebody in again", "gateway-08");
    command
        ->add_option("WHO", parsed->who,
                     "A node's NAME, or ROLE/NAME: operator/bob")
        ->required();
    command->add_option("--reason", parsed->reason, "For people");
    command->callback([&chosen, parsed, banned] {
      chosen = [parsed, banned](Context& context) {
        return Ban(context, *parsed, banned);
      };
    });
  }
}

}  // namespace

void AddPeer(CLI::App& app, Chosen& chosen) {
  CLI::App* noun =
      AddCommand(app, "peer", "Whom a node dials, and who is shut out",
                 "add gateway-08:7600");
  noun->require_subcommand(1);
  AddCommand(*noun, "list",
             "Addresses dialled, peers known by name, and who is shut out",
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
  AddBans(*noun, chosen);
}

}  // namespace dfl::cli
