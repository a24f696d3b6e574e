// dflctl status: what each node is doing now. One target answers for the whole
// network; several targets answer for themselves.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/network/selection.h"
#include "cli/network/survey.h"
#include "cli/status_json.h"
#include "cli/status_table.h"

namespace dfl::cli {
namespace {

// Nodes that one line names before it only counts them.
constexpr size_t kNamesShown = 3;

struct StatusCommand {
  bool peers = false;
  bool local = false;
  client::MemberSelection selection;
};

// The warnings of many nodes: what is said of several is one line.
class Notes {
 public:
  void Add(const std::string& node, const std::string& note) {
    const std::string text(absl::StripPrefix(note, node));
    if (nodes_[text].empty()) order_.push_back(text);
    nodes_[text].push_back(node);
  }
  void Add(const client::DaemonStatus& status) {
    for (const std::string& note : StatusNotes(status)) {
      Add(status.node.node, note);
    }
  }

  void Warn(Context& context) const {
    for (const std::string& text : order_) {
      std::vector<std::string> names = nodes_.at(text);
      const size_t more =
          names.size() > kNamesShown ? names.size() - kNamesShown : 0;
      names.resize(names.size() - more);
      context.Warn(absl::StrCat(
          absl::StrJoin(names, ", "),
          more > 0 ? absl::StrCat(" and ", more, " more") : "", text));
    }
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::vector<std::string>> nodes_;
};

void AddPeers(const client::DaemonStatus& status, std::string& text) {
  if (status.node.peers.empty()) return;
  absl::StrAppend(&text, "\nPeers of ", Printable(status.node.node), ":\n",
                  PeerTable(status.node.peers).ToString());
}

// Of the targets alone.
ExitCode OwnStatus(Context& context, bool with_peers) {
  const auto answers = context.AskAll<client::DaemonStatus>(
      [](client::ControlClient& daemon) { return daemon.Status(); });
  context.Print(
      Context::TargetsJson<client::DaemonStatus>(
          answers, [](const client::DaemonStatus& status,
                      Json& entry) { entry["status"] = ToJsonValue(status); }),
      [&] {
        Table table(StatusTitles(context.wide()));
        std::string peers;
        for (const auto& answer : answers) {
          if (!answer.result.ok()) continue;
          table.Add(StatusRow(*answer.result, context.wide()));
          if (with_peers) AddPeers(*answer.result, peers);
        }
        return table.empty() ? "" : table.ToString() + peers;
      });
  Notes notes;
  for (const auto& answer : answers) {
    if (answer.result.ok()) notes.Add(*answer.result);
  }
  notes.Warn(context);
  return context.Conclude(answers);
}

std::string NetworkText(const Survey& survey, bool with_peers, bool wide) {
  std::vector<std::string> titles = StatusTitles(wide);
  titles.insert(titles.begin() + 1, "STATE");
  titles.emplace_back(">AGE");
  if (wide) titles.insert(titles.end(), {"LABELS", "ADDRESSES"});
  Table table(titles);
  std::string peers;
  for (const MemberReport& report : survey.members) {
    const client::Member& member = report.member;
    std::vector<std::string> row;
    if (report.status.ok()) {
      row = StatusRow(*report.status, wide);
      if (with_peers) AddPeers(*report.status, peers);
    } else {
      row.assign(StatusTitles(wide).size(), "-");
      row[0] = member.node;
    }
    row.insert(row.begin() + 1, StateText(member));
    row.push_back(AgeText(report));
    if (wide) {
      row.push_back(LabelsText(member));
      row.push_back(member.addresses.empty()
                        ? "-"
                        : absl::StrJoin(member.addresses, ", "));
    }
    table.Add(std::move(row));
  }
  return table.ToString() + peers;
}

Json NetworkJson(const std::string& target,
                 const absl::StatusOr<Survey>& survey) {
  Json entry = Context::TargetJson(target, survey.status());
  Json members = Json::array();
  if (survey.ok()) {
    const MemberReport* self = survey->self();
    if (self != nullptr && self->status.ok()) {
      entry["status"] = ToJsonValue(*self->status);
    }
    for (const MemberReport& report : survey->members) {
      members.push_back(ToJsonValue(report));
    }
  }
  Json json{{"targets", Json::array({std::move(entry)})}};
  json["members"] = std::move(members);
  return json;
}

ExitCode NetworkStatus(Context& context, const StatusCommand& command) {
  const std::string& target = context.targets()[0];
  const absl::StatusOr<Survey> survey = TakeSurvey(
      context.Client(0), command.selection, AnswerTime(context.timeout()));
  if (absl::IsUnimplemented(survey.status())) {
    context.Warn(absl::StrCat(target,
                              " is older than this dflctl and answers for "
                              "itself alone"));
    return OwnStatus(context, command.peers);
  }
  context.Print(NetworkJson(target, survey), [&] {
    return survey.ok() ? NetworkText(*survey, command.peers, context.wide())
                       : std::string();
  });
  if (!survey.ok()) return context.ConcludeAll({{target, survey.status()}});
  Notes notes;
  for (const MemberReport& report : survey->members) {
    const client::Member& member = report.member;
    if (report.status.ok()) notes.Add(*report.status);
    if (member.present() && !member.reason.empty()) {
      notes.Add(member.node, absl::StrCat(member.node, " is ",
                                          client::MemberStateName(member.state),
                                          ": ", member.reason));
    }
  }
  notes.Warn(context);
  const std::vector<std::string> failures = Failures(*survey);
  for (const std::string& failure : failures) context.Say(failure);
  return failures.empty() ? kOk : kPartlyDone;
}

ExitCode Status(Context& context, const StatusCommand& command) {
  const bool network = !command.local && context.targets().size() == 1;
  if (network) return NetworkStatus(context, command);
  if (!command.selection.nodes.empty() || !command.selection.labels.empty()) {
    return context.Usage(absl::InvalidArgumentError(
        "--node and --label choose among the members that one target knows; "
        "give one --target, and no --local"));
  }
  return OwnStatus(context, command.peers);
}

}  // namespace

void AddStatus(CLI::App& app, Chosen& chosen) {
  CLI::App* command = AddCommand(
      app, "status",
      "What each node is doing: one target answers for the whole network, "
      "several for themselves",
      "--target gateway-07:7601 --peers");
  auto parsed = std::make_shared<StatusCommand>();
  command->add_flag("-p,--peers", parsed->peers,
                    "Also a table of each node's peers");
  command->add_flag("--local", parsed->local, "Only of the target itself");
  AddSelection(*command, parsed->selection);
  command->callback([&chosen, parsed] {
    chosen = [parsed](Context& context) { return Status(context, *parsed); };
  });
}

}  // namespace dfl::cli
