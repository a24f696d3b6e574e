// dflctl watch: status as it changes, until Ctrl-C or until all have ended.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/live_view.h"
#include "cli/status_json.h"
#include "cli/status_table.h"
#include "cli/watch_feed.h"

namespace dfl::cli {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(100);

struct WatchCommand {
  std::string interval = "1s";
  int64_t count = 0;
  bool until_finished = false;
};

// One line for a terminal that is none: a log, a pipe.
std::string PlainLine(const client::DaemonStatus& status) {
  const client::NodeStatus& node = status.node;
  std::string line =
      absl::StrCat(node.node, " ", client::PhaseName(node.phase), " step ",
                   StepText(node), " round ", RoundText(node), " loss ",
                   node.loss.has_value() ? Fixed(*node.loss, 4) : "-");
  if (node.evaluation.has_value()) {
    const client::Evaluation& scores = *node.evaluation;
    const auto add = [&line](const char* name,
                             const std::optional<double>& score) {
      if (score.has_value()) {
        absl::StrAppend(&line, " ", name, " ", Fixed(*score, 4));
      }
    };
    add("accuracy", scores.accuracy);
    add("MAE", scores.mae);
    add("R2", scores.r2);
  }
  absl::StrAppend(&line, " plan ", PlanText(node), " neighbours ",
                  NeighbourText(node), " sent ", HumanBytes(node.bytes_sent),
                  " received ", HumanBytes(node.bytes_received),
                  node.alone.empty() ? "" : " ALONE");
  return Printable(line);
}

Json ItemJson(const std::string& target, const FeedItem& item) {
  Json json = Context::TargetJson(target, item.status);
  if (item.update.has_value()) {
    json["status"] = ToJsonValue(item.update->status);
    json["events"] = Json::array();
    for (const client::Event& event : item.update->events) {
      json["events"].push_back(ToJsonValue(event));
    }
    json["events_dropped"] = item.update->events_dropped;
  }
  return json;
}

void PrintItem(Context& context, const std::string& target,
               const FeedItem& item) {
  std::ostream& out = context.io().out;
  switch (context.output()) {
    case Output::kJson:
    case Output::kJsonLines:
      out << ToJsonLine(ItemJson(target, item));
      break;
    case Output::kYaml:
      out << "---\n" << ToYaml(ItemJson(target, item));
      break;
    case Output::kTable:
    case Output::kWide:
      if (!item.update.has_value()) break;
      for (const client::Event& event : item.update->events) {
        out << EventLine(item.update->status.node.node, event) << "\n";
      }
      out << PlainLine(item.update->status) << "\n";
      break;
  }
  out.flush();
}

bool HasEnded(client::Phase phase) {
  return phase == client::Phase::kFinished ||
         phase == client::Phase::kStopped || phase == client::Phase::kFailed;
}

// How the run of a node that has ended did so.
ExitCode EndOf(const client::NodeStatus& node) {
  if (node.phase == client::Phase::kFailed) return kTrainingFailed;
  if (node.phase == client::Phase::kStopped) return kStopped;
  return node.alone.empty() ? kOk : kLearnedAlone;
}

// The worst comes first.
int RankOf(ExitCode end) {
  switch (end) {
    case kTrainingFailed:
      return 3;
    case kStopped:
      return 2;
    case kLearnedAlone:
      return 1;
    default:
      return 0;
  }
}

// Says on stderr how the runs have ended that did not end well.
ExitCode ConcludeRuns(Context& context,
                      const std::map<size_t, client::NodeStatus>& ended) {
  ExitCode worst = kOk;
  for (const auto& [index, node] : ended) {
    const ExitCode end = EndOf(node);
    if (RankOf(end) > RankOf(worst)) worst = end;
    if (end == kOk) continue;
    context.Say(
        Printable(absl::StrCat(node.node, " ", client::PhaseName(node.phase),
                               ": ", node.phase_reason)));
  }
  return worst;
}

ExitCode Watch(Context& context, const WatchCommand& command) {
  absl::Duration interval;
  if (!absl::ParseDuration(command.interval, &interval) ||
      interval < absl::Milliseconds(100) || interval > absl::Hours(1)) {
    return context.Usage(absl::InvalidArgumentError(
        absl::StrCat("--interval: \"", command.interval,
                     "\" is not in 100ms to 1h; allowed: 500ms, 2s, 1m")));
  }
  const std::vector<std::string>& targets = context.targets();
  const size_t count = targets.size();
  std::vector<std::pair<std::string, absl::Status>> ends;
  for (const std::string& target : targets) {
    ends.emplace_back(target, absl::OkStatus());
  }
  std::vector<int64_t> updates(count, 0);
  std::set<size_t> over;
  std::map<size_t, client::NodeStatus> ended;
  {
    const InterruptScope interrupt;
    std::unique_ptr<LiveView> view;
    if (context.text() && context.io().out_is_terminal) {
      view = std::make_unique<LiveView>(context.io().out, targets,
                                        context.color());
    }
    WatchFeed feed(context, interval);
    while (!InterruptScope::Requested() && over.size() < count &&
           context.io().out.good()) {
      const std::optional<FeedItem> item = feed.Next(kPoll);
      if (!item.has_value()) continue;
      const size_t i = item->index;
      if (over.count(i) > 0) continue;
      if (item->update.has_value()) {
        if (view != nullptr) view->Take(i, *item->update);
        ++updates[i];
        if (command.count > 0 && updates[i] >= command.count) over.insert(i);
        if (command.until_finished &&
            HasEnded(item->update->status.node.phase)) {
          over.insert(i);
          ended[i] = item->update->status.node;
        }
      } else {
        if (view != nullptr) view->Take(i, item->status);
        if (item->given_up) {
          over.insert(i);
          ends[i].second = item->status;
        } else if (view == nullptr) {
          context.Say(item->status.message());
        }
      }
      if (view != nullptr) {
        view->Draw(TerminalWidth());
      } else {
        PrintItem(context, targets[i], *item);
      }
    }
  }
  const ExitCode asked = context.ConcludeAll(ends);
  const ExitCode run = ConcludeRuns(context, ended);
  if (asked != kOk) return asked;
  if (run != kOk || !command.until_finished || over.size() == count) return run;
  context.Say(absl::StrCat("interrupted; ", count - over.size(), " of ", count,
                           count == 1 ? " run has" : " runs have",
                           " not ended"));
  return kFailed;
}

}  // namespace

void AddWatch(CLI::App& app, Chosen& chosen) {
  auto watch = std::make_shared<WatchCommand>();
  CLI::App* command = AddCommand(
      app, "watch",
      "Status as it changes, until Ctrl-C; json gives a document a line",
      "--all gateways --until-finished");
  command->add_option("--interval", watch->interval, "Between two updates")
      ->capture_default_str();
  command->add_option("--count", watch->count,
                      "End after this many updates of each target");
  command->add_flag("--until-finished", watch->until_finished,
                    "End when every run has ended; 0 when all have finished "
                    "together with their neighbours, see the exit codes");
  command->callback([&chosen, watch] {
    chosen = [watch](Context& context) { return Watch(context, *watch); };
  });
}

}  // namespace dfl::cli
