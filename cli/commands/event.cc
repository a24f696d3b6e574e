// dflctl event list|watch: what happened on the targets.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/status_json.h"
#include "cli/watch_feed.h"
#include "daemon/base/names.h"

namespace dfl::cli {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(100);

struct EventCommand {
  std::vector<std::string> kinds;
  int limit = 256;
  int64_t count = 0;
};

std::string TimeText(const client::Event& event) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S",
                          absl::FromUnixNanos(event.unix_nanos),
                          absl::LocalTimeZone());
}

absl::Status CheckKinds(const std::vector<std::string>& kinds) {
  const std::vector<std::string>& known = client::EventKinds();
  for (const std::string& kind : kinds) {
    if (std::find(known.begin(), known.end(), kind) == known.end()) {
      return UnknownNameError("--kind", kind, known);
    }
  }
  return absl::OkStatus();
}

Json EventJson(const std::string& target, const client::Event& event) {
  Json json{{"target", target}};
  json.update(ToJsonValue(event));
  return json;
}

ExitCode List(Context& context, const EventCommand& command) {
  const absl::Status known = CheckKinds(command.kinds);
  if (!known.ok()) return context.Usage(known);
  const client::EventFilter filter{command.kinds, command.limit};
  const auto answers = context.AskAll<client::EventList>(
      [&](client::ControlClient& daemon) { return daemon.Events(filter); });
  // Of all targets, by their clocks.
  std::vector<std::pair<std::string, client::Event>> events;
  for (const auto& answer : answers) {
    if (!answer.result.ok()) continue;
    for (const client::Event& event : answer.result->events) {
      events.emplace_back(answer.target, event);
    }
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) {
                     return a.second.unix_nanos < b.second.unix_nanos;
                   });
  Json json = Context::TargetsJson<client::EventList>(
      answers, [](const client::EventList& list, Json& entry) {
        entry["forgotten"] = list.forgotten;
      });
  json["events"] = Json::array();
  for (const auto& [target, event] : events) {
    json["events"].push_back(EventJson(target, event));
  }
  const bool several = answers.size() > 1;
  context.Print(json, [&] {
    std::vector<std::string> titles = {"TIME", "KIND", ">STEP", "PEER", "WHAT"};
    if (several) titles.insert(titles.begin() + 1, "TARGET");
    Table table(titles);
    for (const auto& [target, event] : events) {
      std::vector<std::string> row = {
          TimeText(event), event.kind.empty() ? "?" : event.kind,
          absl::StrCat(event.step), event.peer.empty() ? "-" : event.peer,
          event.text};
      if (several) row.insert(row.begin() + 1, target);
      table.Add(std::move(row));
    }
    return table.ToString();
  });
  return context.Conclude(answers);
}

void PrintEvent(Context& context, const std::string& target,
                const std::string& node, const client::Event& event) {
  std::ostream& out = context.io().out;
  switch (context.output()) {
    case Output::kJson:
    case Output::kJsonLines:
      out << ToJsonLine(EventJson(target, event));
      break;
    case Output::kYaml:
      out << "---\n" << ToYaml(EventJson(target, event));
      break;
    case Output::kTable:
    case Output::kWide:
      out << Printable(
                 absl::StrCat(TimeText(event), "  ", node, "  ", event.text))
          << "\n";
      break;
  }
}

ExitCode Watch(Context& context, const EventCommand& command) {
  const absl::Status known = CheckKinds(command.kinds);
  if (!known.ok()) return context.Usage(known);
  const std::set<std::string> wanted(command.kinds.begin(),
                                     command.kinds.end());
  const std::vector<std::string>& targets = context.targets();
  std::vector<std::pair<std::string, absl::Status>> ends;
  for (const std::string& target : targets) {
    ends.emplace_back(target, absl::OkStatus());
  }
  std::set<size_t> over;
  int64_t left = command.count > 0 ? command.count : -1;
  const InterruptScope interrupt;
  WatchFeed feed(context, absl::Seconds(1));
  while (!InterruptScope::Requested() && over.size() < targets.size() &&
         left != 0 && context.io().out.good()) {
    const std::optional<FeedItem> item = feed.Next(kPoll);
    if (!item.has_value()) continue;
    const std::string& target = targets[item->index];
    if (!item->update.has_value()) {
      if (item->given_up) {
        over.insert(item->index);
        ends[item->index].second = item->status;
      } else {
        context.Say(item->status.message());
      }
      continue;
    }
    const client::WatchUpdate& update = *item->update;
    if (update.events_dropped > 0) {
      context.Say(absl::StrCat("warning: ", target, ": ", update.events_dropped,
                               " events came too fast and are left out"));
    }
    for (const client::Event& event : update.events) {
      if (left == 0) break;
      if (!wanted.empty() && wanted.count(event.kind) == 0) continue;
      PrintEvent(context, target, update.status.node.node, event);
      if (left > 0) --left;
    }
    context.io().out.flush();
  }
  return context.ConcludeAll(ends);
}

}  // namespace

void AddEvent(CLI::App& app, Chosen& chosen) {
  CLI::App* noun = AddCommand(app, "event", "What happens on the targets",
                              "watch --kind evaluated");
  noun->require_subcommand(1);
  const std::string kinds = absl::StrJoin(client::EventKinds(), ", ");
  auto parsed = std::make_shared<EventCommand>();
  const auto with_kinds = [&](CLI::App& command) {
    command
        .add_option("--kind", parsed->kinds,
                    absl::StrCat("Only these; may be repeated: ", kinds))
        ->delimiter(',')
        ->allow_extra_args(false);
  };
  CLI::App* list =
      AddCommand(*noun, "list", "The last ones, at most 256 of each target",
                 "--kind link-down,link-up --limit 20");
  with_kinds(*list);
  list->add_option("--limit", parsed->limit, "Only the newest of each target")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  list->callback([&chosen, parsed] {
    chosen = [parsed](Context& context) { return List(context, *parsed); };
  });
  CLI::App* watch = AddCommand(
      *noun, "watch",
      "Each as it happens, until Ctrl-C; json gives a document a line",
      "-o jsonl --count 10");
  with_kinds(*watch);
  watch->add_option("--count", parsed->count, "End after this many")
      ->check(CLI::PositiveNumber);
  watch->callback([&chosen, parsed] {
    chosen = [parsed](Context& context) { return Watch(context, *parsed); };
  });
}

}  // namespace dfl::cli
