#include "daemon/app/logger.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/one_line.h"
#include "nlohmann/json.hpp"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace dfl::app {
namespace {

using config::LogLevel;

constexpr int64_t kLinesPerWindow = 20;
constexpr absl::Duration kWindow = absl::Seconds(10);
// A node may evaluate every few milliseconds, and that is no news.
constexpr absl::string_view kEvaluated = "evaluated";

int64_t LinesPerWindow(absl::string_view event) {
  return event == kEvaluated ? 1 : kLinesPerWindow;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Of sd-daemon(3), which are those of syslog.
const char* PriorityOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "<7>";
    case LogLevel::kInfo:
      return "<6>";
    case LogLevel::kWarning:
      return "<4>";
    case LogLevel::kError:
      return "<3>";
  }
  return "<6>";
}

control::LogLevel ToControl(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return control::LogLevel::kDebug;
    case LogLevel::kInfo:
      return control::LogLevel::kInfo;
    case LogLevel::kWarning:
      return control::LogLevel::kWarning;
    case LogLevel::kError:
      return control::LogLevel::kError;
  }
  return control::LogLevel::kInfo;
}

std::string JsonLine(absl::Time at, LogLevel level, const std::string& node,
                     absl::string_view event, const std::string& text,
                     const LogFields& fields) {
  nlohmann::ordered_json line;
  line["time"] = absl::FormatTime(absl::RFC3339_full, at, absl::UTCTimeZone());
  line["level"] = config::ToString(level);
  line["node"] = node;
  line["event"] = std::string(event);
  for (const auto& [name, value] : fields) line[name] = value;
  line["message"] = text;
  // Whatever a peer put into a text, the line stays valid JSON.
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

bool IsJournal(int fd, absl::string_view journal_stream) {
  struct stat found{};
  if (journal_stream.empty() || fstat(fd, &found) != 0) return false;
  return journal_stream == absl::StrCat(found.st_dev, ":", found.st_ino);
}

bool Logger::StderrIsJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  return IsJournal(STDERR_FILENO, stream == nullptr ? "" : stream);
}

Logger::Logger(const config::LogSettings& settings, std::string node,
               LogClocks clocks, bool journal)
    : settings_(settings),
      node_(std::move(node)),
      clocks_(std::move(clocks)),
      journal_(journal),
      logger_(std::make_shared<spdlog::logger>(
          "dfld", std::make_shared<spdlog::sinks::stderr_sink_mt>())),
      settings_level_(settings.level),
      other_level_(settings.level) {
  logger_->set_level(ToSpdlog(settings.level));
  logger_->set_pattern(settings.format == config::LogFormat::kJson || journal
                           ? "%v"
                           : "%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger_->flush_on(spdlog::level::debug);
}

Logger::~Logger() { TellLeftOutBy(absl::InfiniteFuture()); }

void Logger::SetLevel(LogLevel level) {
  const absl::MutexLock lock(&mutex_);
  settings_level_ = level;
  PutLevelInForce();
}

void Logger::SetLevelFor(LogLevel level, absl::Duration time) {
  const absl::MutexLock lock(&mutex_);
  other_level_ = level;
  other_until_ = clocks_.steady() + time;
  PutLevelInForce();
}

void Logger::ResetLevel() {
  const absl::MutexLock lock(&mutex_);
  other_until_ = absl::InfinitePast();
  PutLevelInForce();
}

void Logger::PutLevelInForce() {
  logger_->set_level(ToSpdlog(
      clocks_.steady() < other_until_ ? other_level_ : settings_level_));
}

control::LogLevels Logger::Levels() const {
  const absl::MutexLock lock(&mutex_);
  const absl::Duration left = other_until_ - clocks_.steady();
  if (left <= absl::ZeroDuration()) {
    return {ToControl(settings_level_), ToControl(settings_level_), {}};
  }
  return {ToControl(other_level_), ToControl(settings_level_), left};
}

void Logger::Emit(const Line& line, absl::string_view event) {
  const absl::Time now = clocks_.wall();
  const std::string text = OneLine(line.text);
  tail_.Add(
      {0, now, ToControl(line.level), std::string(event), text, line.fields});
  const char* priority = journal_ ? PriorityOf(line.level) : "";
  logger_->log(
      ToSpdlog(line.level), "{}{}", priority,
      settings_.format == config::LogFormat::kText
          ? absl::StrCat("[", node_, "] ", event, ": ", text)
          : JsonLine(now, line.level, node_, event, text, line.fields));
}

void Logger::EmitLeftOut(absl::string_view event, const Window& window) {
  Line line = window.last;
  line.text =
      event == kEvaluated
          ? absl::StrCat(line.text, " (the last of ", window.left_out, ")")
          : absl::StrCat(window.left_out,
                         " more like this were left out, at last: ", line.text);
  Emit(line, event);
}

void Logger::Write(LogLevel level, absl::string_view event,
                   absl::string_view text, const LogFields& fields) {
  if (!logger_->should_log(ToSpdlog(level))) return;
  Window before;
  bool written = true;
  if (level != LogLevel::kDebug) {
    absl::MutexLock lock(&mutex_);
    Window& window = windows_[std::string(event)];
    const absl::Time now = clocks_.steady();
    if (now - window.start > kWindow) {
      // What is told of the time that is over is the first line of the next.
      before = std::exchange(window, Window{now, 0, 0, {}});
      window.written = before.left_out > 0 ? 1 : 0;
    }
    written = window.written < LinesPerWindow(event);
    if (written) {
      ++window.written;
    } else {
      ++window.left_out;
      window.last = {level, std::string(text), fields};
    }
  }
  if (before.left_out > 0) EmitLeftOut(event, before);
  if (written) Emit({level, std::string(text), fields}, event);
}

void Logger::Keep(LogLevel level, absl::string_view event,
                  absl::string_view text, const LogFields& fields) {
  if (!logger_->should_log(ToSpdlog(level))) return;
  Emit({level, std::string(text), fields}, event);
}

void Logger::TellLeftOut() {
  {
    const absl::MutexLock lock(&mutex_);
    if (other_until_ != absl::InfinitePast() &&
        clocks_.steady() >= other_until_) {
      other_until_ = absl::InfinitePast();
      PutLevelInForce();
    }
  }
  TellLeftOutBy(clocks_.steady());
}

void Logger::TellLeftOutBy(absl::Time now) {
  std::map<std::string, Window> over;
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [event, window] : windows_) {
      if (window.left_out == 0 || now - window.start <= kWindow) continue;
      over.emplace(event, std::exchange(window, Window{now, 1, 0, {}}));
    }
  }
  for (const auto& [event, window] : over) EmitLeftOut(event, window);
}

}  // namespace dfl::app
