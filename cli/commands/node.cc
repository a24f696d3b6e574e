// dflctl node list|show, and ping: the members of the network, as one of them
// knows them.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/network/selection.h"
#include "cli/network/survey.h"
#include "cli/status_json.h"
#include "cli/status_table.h"

namespace dfl::cli {
namespace {

struct PingCommand {
  std::vector<std::string> nodes;
  std::string within = "2s";
};

std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string PlanText(const client::Member& member) {
  return member.plan_version == 0 ? "-" : absl::StrCat(member.plan_version);
}

std::string LinkText(const client::Member& member) {
  if (member.self) return "self";
  return member.linked ? "direct" : "-";
}

std::string ListText(const client::MemberTable& table, bool wide) {
  std::vector<std::string> titles = {"NODE",       "STATE",  ">FOR",
                                     "TAKES PART", ">PLAN",  ">ROWS",
                                     "LINK",       "LABELS", "ADDRESS"};
  if (wide) titles.insert(titles.end(), {"PACE", ">STARTS", "PLAN HASH"});
  titles.emplace_back("REASON");
  Table text(titles);
  for (const client::Member& member : table.members) {
    std::vector<std::string> row = {
        member.node,
        StateText(member),
        HumanSeconds(member.seconds_in_state),
        client::ParticipationName(member.participation),
        PlanText(member),
        member.rows == 0 ? "-" : absl::StrCat(member.rows),
        LinkText(member),
        LabelsText(member),
        member.addresses.empty() ? "only dials out"
        : wide                   ? absl::StrJoin(member.addresses, ", ")
                                 : member.addresses[0]};
    if (wide) {
      row.insert(row.end(), {member.pace, absl::StrCat(member.starts),
                             OrDash(member.plan_hash)});
    }
    row.push_back(member.reason);
    text.Add(std::move(row));
  }
  return text.ToString();
}

ExitCode List(Context& context, const client::MemberSelection& selection) {
  const absl::StatusOr<client::MemberTable> table = AskOne<client::MemberTable>(
      context,
      [&](client::ControlClient& daemon) { return daemon.Members(selection); });
  if (!table.ok()) return context.Fail(table.status());
  Json json{{"node", table->node},
            {"membership_off", table->membership_off},
            {"members", Json::array()}};
  for (const client::Member& member : table->members) {
    json["members"].push_back(ToJsonValue(member));
  }
  context.Print(json, [&] { return ListText(*table, context.wide()); });
  if (table->membership_off) {
    context.Say(absl::StrCat(
        table->node,
        " keeps no membership and knows of itself alone; its links are those "
        "of `dflctl peer list`"));
  }
  return kOk;
}

std::string MemberText(const MemberReport& report) {
  const client::Member& member = report.member;
  std::vector<std::pair<std::string, std::string>> lines = {
      {"node", member.node},
      {"state", StateText(member)},
      {"for", HumanSeconds(member.seconds_in_state)}};
  if (!member.reason.empty()) lines.emplace_back("reason", member.reason);
  lines.insert(lines.end(),
               {{"takes part", client::ParticipationName(member.participation)},
                {"plan in force", PlanText(member)},
                {"rows", absl::StrCat(member.rows)},
                {"link", LinkText(member)},
                {"labels", LabelsText(member)},
                {"addresses", member.addresses.empty()
                                  ? "none: it only dials out"
                                  : absl::StrJoin(member.addresses, ", ")},
                {"pace", member.pace},
                {"starts", absl::StrCat(member.starts)}});
  if (!report.status.ok()) {
    lines.emplace_back("report", report.status.status().message());
    return KeyValueLines(lines);
  }
  const client::DaemonStatus& status = *report.status;
  const client::NodeStatus& node = status.node;
  lines.insert(
      lines.end(),
      {{"report", absl::StrCat("its own, of ", AgeText(report), " ago")},
       {"version", OrDash(status.version)},
       {"up for", HumanSeconds(status.uptime_seconds)},
       {"phase", client::PhaseName(node.phase)},
       {"step", StepText(node)},
       {"round", RoundText(node)},
       {"loss", node.loss.has_value() ? Fixed(*node.loss, 4) : "-"},
       {"score", ScoreText(node)},
       {"algorithm", OrDash(node.algorithm)},
       {"topology", OrDash(node.topology)},
       {"neighbours", NeighbourText(node)},
       {"sent", HumanBytes(node.bytes_sent)},
       {"received", HumanBytes(node.bytes_received)},
       {"saved", SavedText(node)}});
  for (const std::string& note : StatusNotes(status)) {
    lines.emplace_back("note", note);
  }
  std::string text = KeyValueLines(lines);
  if (!node.peers.empty()) {
    absl::StrAppend(&text, "\n", PeerTable(node.peers).ToString());
  }
  return text;
}

ExitCode Show(Context& context, const std::string& node) {
  const absl::StatusOr<Survey> survey =
      AskOne<Survey>(context, [&](client::ControlClient& daemon) {
        return TakeSurvey(daemon, {{node}, {}}, AnswerTime(context.timeout()));
      });
  if (!survey.ok()) return context.Fail(survey.status());
  if (survey->members.empty()) {
    return context.Fail(
        absl::NotFoundError(absl::StrCat("there is no member ", node)));
  }
  const MemberReport& report = survey->members[0];
  context.Print(ToJsonValue(report), [&] { return MemberText(report); });
  if (report.status.ok()) return kOk;
  context.Say(absl::StrCat(node, ": ", report.status.status().message()));
  // What the target knows of one that is gone was shown.
  return report.member.present() ? ExitCodeOf(report.status.status())
                                 : kPartlyDone;
}

ExitCode Ping(Context& context, const PingCommand& command) {
  absl::Duration within;
  if (!absl::ParseDuration(command.within, &within) ||
      within < absl::Milliseconds(10) || within > absl::Seconds(60)) {
    return context.Usage(absl::InvalidArgumentError(
        absl::StrCat("--within: \"", command.within,
                     "\" is not in 10ms to 60s; allowed: 500ms, 2s")));
  }
  Json pings = Json::array();
  std::string text;
  std::vector<std::pair<std::string, absl::Status>> ends;
  for (const std::string& node : command.nodes) {
    // No answer of a member is an answer of the target.
    const absl::StatusOr<client::MemberPing> ping =
        AskOne<client::MemberPing>(context, [&](client::ControlClient& daemon) {
          return daemon.Ping(node, within);
        });
    ends.emplace_back(node, ping.status());
    Json entry{{"node", node}, {"ok", ping.ok()}};
    if (ping.ok()) {
      entry["round_trip_seconds"] = absl::ToDoubleSeconds(ping->round_trip);
      entry["hops"] = ping->hops;
      absl::StrAppend(
          &text, Printable(node), ": ",
          Fixed(absl::ToDoubleMilliseconds(ping->round_trip), 2), " ms",
          ping->hops == 0 ? ", the target itself"
                          : absl::StrCat(" over ", ping->hops, " link",
                                         ping->hops == 1 ? "" : "s"),
          "\n");
    } else {
      entry["error"] = Context::ErrorJson(ping.status());
    }
    pings.push_back(std::move(entry));
  }
  context.Print(Json{{"pings", std::move(pings)}}, [&] { return text; });
  return context.ConcludeAll(ends);
}

}  // namespace

void AddNode(CLI::App& app, Chosen& chosen) {
  CLI::App* noun = AddCommand(
      app, "node", "The members of the network, as the target knows them",
      "show gateway-09");
  noun->require_subcommand(1);
  auto selection = std::make_shared<client::MemberSelection>();
  CLI::App* list =
      AddCommand(*noun, "list", "Who is there, and who was", "-o wide");
  AddSelection(*list, *selection);
  list->callback([&chosen, selection] {
    chosen = [selection](Context& context) {
      return List(context, *selection);
    };
  });
  auto name = std::make_shared<std::string>();
  CLI::App* show = AddCommand(
      *noun, "show", "One member, with what it says of itself", "gateway-08");
  show->add_option("NODE", *name, "Its name")->required();
  show->callback([&chosen, name] {
    chosen = [name](Context& context) { return Show(context, *name); };
  });
  AddNodeOrders(*noun, chosen);
}

void AddPing(CLI::App& app, Chosen& chosen) {
  auto parsed = std::make_shared<PingCommand>();
  CLI::App* command =
      AddCommand(app, "ping", "Whether members answer the target, and how fast",
                 "gateway-08 gateway-09");
  command->add_option("NODE", parsed->nodes, "Names of members")->required();
  command->add_option("--within", parsed->within, "For each: 10ms to 60s")
      ->capture_default_str();
  command->callback([&chosen, parsed] {
    chosen = [parsed](Context& context) { return Ping(context, *parsed); };
  });
}

}  // namespace dfl::cli
