// dflctl log [show|level]: the newest lines of the daemons' logs.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/console.h"

namespace dfl::cli {
namespace {

using client::LogLevel;

constexpr absl::Duration kPoll = absl::Seconds(1);
constexpr absl::Duration kNap = absl::Milliseconds(100);

struct LogCommand {
  std::string level;
  int limit = 100;
  bool follow = false;
};

struct LevelCommand {
  std::string level;
  std::string time = "10m";
};

LogLevel LevelOf(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return LogLevel::kUnknown;
}

Json LineJson(const std::string& target, const client::LogLine& line) {
  return Json{{"target", target},
              {"id", line.id},
              {"unix_nanos", line.unix_nanos},
              {"level", client::ToString(line.level)},
              {"event", line.event},
              {"text", line.text},
              {"fields", line.fields}};
}

std::string LineText(const std::string& target, const client::LogLine& line) {
  return absl::StrCat(absl::FormatTime("%Y-%m-%d %H:%M:%E3S",
                                       absl::FromUnixNanos(line.unix_nanos),
                                       absl::LocalTimeZone()),
                      " ",
                      absl::StrFormat("%-7s", client::ToString(line.level)),
                      " ", target.empty() ? "" : absl::StrCat(target, " "),
                      line.event, ": ", Printable(line.text), "\n");
}

using Lines = std::vector<std::pair<std::string, client::LogLine>>;

// Of all targets, by their clocks.
Lines Merge(const std::vector<Answer<client::LogList>>& answers) {
  Lines lines;
  for (const auto& answer : answers) {
    if (!answer.result.ok()) continue;
    for (const client::LogLine& line : answer.result->lines) {
      lines.emplace_back(answer.target, line);
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) {
                     return a.second.unix_nanos < b.second.unix_nanos;
                   });
  return lines;
}

// Asks each target for what came after `after`.
std::vector<Answer<client::LogList>> Ask(Context& context,
                                         const LogCommand& command,
                                         const std::vector<int64_t>& after) {
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < context.targets().size(); ++i) {
    index[context.targets()[i]] = i;
  }
  return context.AskAll<client::LogList>(
      [&](client::ControlClient& daemon) -> absl::StatusOr<client::LogList> {
        client::LogFilter filter;
        const auto found = index.find(daemon.target());
        if (found != index.end()) filter.after = after[found->second];
        filter.limit = filter.after > 0 ? 0 : command.limit;
        filter.level = LevelOf(command.level);
        return daemon.Log(filter);
      });
}

ExitCode Follow(Context& context, const LogCommand& command) {
  const InterruptScope interrupt;
  std::vector<int64_t> after(context.targets().size(), 0);
  const bool several = after.size() > 1;
  while (true) {
    const auto answers = Ask(context, command, after);
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i].result.ok()) return context.Conclude(answers);
      for (const client::LogLine& line : answers[i].result->lines) {
        after[i] = std::max(after[i], line.id);
      }
    }
    for (const auto& [target, line] : Merge(answers)) {
      context.io().out << (context.text()
                               ? LineText(several ? target : "", line)
                               : ToJsonLine(LineJson(target, line)));
    }
    context.io().out.flush();
    for (absl::Duration left = kPoll; left > absl::ZeroDuration();
         left -= kNap) {
      if (InterruptScope::Requested() || !context.io().out.good()) return kOk;
      absl::SleepFor(kNap);
    }
  }
}

ExitCode Show(Context& context, const LogCommand& command) {
  if (command.follow) return Follow(context, command);
  const auto answers =
      Ask(context, command, std::vector<int64_t>(context.targets().size(), 0));
  const Lines lines = Merge(answers);
  Json json = Context::TargetsJson<client::LogList>(
      answers, [](const client::LogList& list, Json& entry) {
        entry["forgotten"] = list.forgotten;
        entry["level"] = client::ToString(list.level);
        entry["seconds_left"] = list.seconds_left;
      });
  json["lines"] = Json::array();
  for (const auto& [target, line] : lines) {
    json["lines"].push_back(LineJson(target, line));
  }
  context.Print(json, [&] {
    std::string out;
    for (const auto& [target, line] : lines) {
      out += LineText(answers.size() > 1 ? target : "", line);
    }
    return out;
  });
  return context.Conclude(answers);
}

ExitCode SetLevel(Context& context, const LevelCommand& command) {
  const absl::StatusOr<absl::Duration> time = ParseTimeout(command.time);
  if (!time.ok()) {
    return context.Usage(absl::InvalidArgumentError(
        absl::StrCat("--for: \"", command.time,
                     "\" is no time above zero; write 30s, 10m or 2h")));
  }
  const LogLevel level = LevelOf(command.level);
  const auto answers =
      context.AskAll<client::LogLevels>([&](client::ControlClient& daemon) {
        return daemon.SetLogLevel(level, *time);
      });
  context.Print(Context::TargetsJson<client::LogLevels>(
                    answers,
                    [](const client::LogLevels& levels, Json& entry) {
                      entry["level"] = client::ToString(levels.now);
                      entry["settings_level"] =
                          client::ToString(levels.settings);
                    }),
                [&] {
                  std::string out;
                  for (const auto& answer : answers) {
                    if (!answer.result.ok()) continue;
                    absl::StrAppend(&out, answer.target, ": ",
                                    client::ToString(answer.result->now));
                    if (level != LogLevel::kUnknown) {
                      absl::StrAppend(
                          &out, " for ", absl::FormatDuration(*time), ", then ",
                          client::ToString(answer.result->settings));
                    }
                    out += "\n";
                  }
                  return out;
                });
  return context.Conclude(answers);
}

}  // namespace

void AddLog(CLI::App& app, Chosen& chosen) {
  CLI::App* noun =
      AddCommand(app, "log", "The logs of the targets", "show --level warning");
  noun->require_subcommand(1);
  auto parsed = std::make_shared<LogCommand>();
  CLI::App* show =
      AddCommand(*noun, "show", "The newest lines, at most 2000 of each target",
                 "--level warning -f");
  show->add_option("--level", parsed->level, "The least grave")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  show->add_option("--limit", parsed->limit, "Only the newest of each target")
      ->check(CLI::Range(1, 2000))
      ->capture_default_str();
  show->add_flag("-f,--follow", parsed->follow,
                 "Go on with what comes, until Ctrl-C; json gives a document a "
                 "line");
  show->callback([&chosen, parsed] {
    chosen = [parsed](Context& context) { return Show(context, *parsed); };
  });
  auto wanted = std::make_shared<LevelCommand>();
  CLI::App* level = AddCommand(
      *noun, "level",
      "Sets the least grave level that is written, for a while; then that of "
      "the settings is back",
      "debug --for 10m");
  level
      ->add_option("LEVEL", wanted->level,
                   "debug, info, warning, error; reset: that of the settings")
      ->required()
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "reset"}));
  level->add_option("--for", wanted->time, "How long, at most 24h")
      ->capture_default_str();
  level->callback([&chosen, wanted] {
    chosen = [wanted](Context& context) { return SetLevel(context, *wanted); };
  });
}

}  // namespace dfl::cli
