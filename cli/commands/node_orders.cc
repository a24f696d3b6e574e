// dflctl node drain|undrain|label: orders that are about one node.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/commands.h"
#include "cli/signing.h"
#include "daemon/base/ids.h"
#include "daemon/base/status_macros.h"
#include "daemon/records/record_content.h"

namespace dfl::cli {
namespace {

using Labels = std::map<std::string, std::string>;
using records::RecordKind;

struct DrainCommand {
  std::string node;
  std::string reason;
};

struct LabelCommand {
  std::string node;
  std::vector<std::string> changes;  // "site=north", "site-"
  bool reset = false;
};

// The member `node`, as the first target that answers knows it.
// Errors: NOT_FOUND as that target says it; as its failure.
absl::StatusOr<client::Member> FindMember(Context& context,
                                          const std::string& node) {
  absl::Status failure;
  for (size_t i = 0; i < context.targets().size(); ++i) {
    client::MemberSelection selection;
    selection.nodes = {node};
    const auto table = context.Client(i).Members(selection);
    if (!table.ok()) {
      failure = table.status();
      continue;
    }
    for (const client::Member& member : table->members) {
      if (member.node == node) return member;
    }
  }
  if (!failure.ok()) return failure;
  return absl::NotFoundError(
      absl::StrCat("no target knows of a member called ", node));
}

ExitCode Drain(Context& context, const DrainCommand& command, bool draining) {
  const absl::Status valid = ValidateNodeName(command.node);
  if (!valid.ok()) return context.Usage(Annotate(valid, "NODE"));
  const absl::StatusOr<Signer> signer = Signer::ForTargets(context);
  if (!signer.ok()) return context.Fail(signer.status());
  // The order waits for a node that is away.
  const absl::Status known = FindMember(context, command.node).status();
  if (absl::IsNotFound(known)) context.Warn(known.message());
  return SignAndPut(
      context, *signer, RecordKind::kDrain, command.node,
      records::ToContent(records::DrainOrder{draining, command.reason}),
      [&](Json& entry) {
        entry["node"] = command.node;
        entry["draining"] = draining;
        entry["reason"] = command.reason;
      });
}

// `labels` with the changes made.
absl::StatusOr<Labels> Changed(Labels labels,
                               const std::vector<std::string>& changes) {
  for (const std::string& change : changes) {
    absl::string_view key = change;
    if (!absl::StrContains(change, "=") && absl::ConsumeSuffix(&key, "-")) {
      if (labels.erase(std::string(key)) > 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the node has no label \"", key, "\" to remove"));
    }
    DFL_RETURN_IF_ERROR(records::ValidateLabel(change));
    const size_t at = change.find('=');
    labels[change.substr(0, at)] = change.substr(at + 1);
  }
  return labels;
}

ExitCode Label(Context& context, const LabelCommand& command) {
  if (command.reset != command.changes.empty()) {
    return context.Usage(absl::InvalidArgumentError(
        "give labels to set and remove, as site=north gpu-, or --reset alone"));
  }
  const absl::StatusOr<Signer> signer = Signer::ForTargets(context);
  if (!signer.ok()) return context.Fail(signer.status());
  records::LabelsOrder order;
  order.from_settings = command.reset;
  if (!command.reset) {
    absl::StatusOr<client::Member> member = FindMember(context, command.node);
    if (!member.ok()) return context.Fail(member.status());
    absl::StatusOr<Labels> labels =
        Changed(std::move(member->labels), command.changes);
    if (!labels.ok()) return context.Usage(labels.status());
    order.labels = *std::move(labels);
  }
  return SignAndPut(context, *signer, RecordKind::kLabels, command.node,
                    records::ToContent(order), [&](Json& entry) {
                      entry["node"] = command.node;
                      entry["from_settings"] = order.from_settings;
                      entry["labels"] = Json::object();
                      for (const auto& [key, value] : order.labels) {
                        entry["labels"][key] = value;
                      }
                    });
}

}  // namespace

void AddNodeOrders(CLI::App& noun, Chosen& chosen) {
  auto drain = std::make_shared<DrainCommand>();
  for (const bool draining : {true, false}) {
    CLI::App* command =
        draining ? AddCommand(noun, "drain",
                              "Have a node halt and be nobody's neighbour, so "
                              "that it can be stopped",
                              "gateway-08 --reason \"a new disk\"")
                 : AddCommand(noun, "undrain", "Have it take part again",
                              "gateway-08");
    command->add_option("NODE", drain->node, "The node's name")->required();
    command->add_option("--reason", drain->reason, "For people");
    command->callback([&chosen, drain, draining] {
      chosen = [drain, draining](Context& context) {
        return Drain(context, *drain, draining);
      };
    });
  }
  auto label = std::make_shared<LabelCommand>();
  CLI::App* command =
      AddCommand(noun, "label", "Set and remove labels of a node",
                 "gateway-08 site=north gpu-");
  command->add_option("NODE", label->node, "The node's name")->required();
  command->add_option("LABEL", label->changes,
                      "KEY=VALUE sets a label, KEY- removes it");
  command->add_flag("--reset", label->reset,
                    "Only those of the node's own settings");
  command->callback([&chosen, label] {
    chosen = [label](Context& context) { return Label(context, *label); };
  });
}

}  // namespace dfl::cli
