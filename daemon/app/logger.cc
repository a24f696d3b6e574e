#include "daemon/app/logger.h"

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

std::string LeftOutText(int64_t count, absl::string_view last) {
  return absl::StrCat(count, " more like this were left out, at last: ", last);
}

}  // namespace

Logger::Logger(const config::LogSettings& settings, std::string node,
               LogClocks clocks)
    : settings_(settings),
      node_(std::move(node)),
      clocks_(std::move(clocks)),
      logger_(std::make_shared<spdlog::logger>(
          "dfld", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_level(ToSpdlog(settings.level));
  logger_->set_pattern(settings.format == config::LogFormat::kJson
                           ? "%v"
                           : "%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger_->flush_on(spdlog::level::debug);
}

Logger::~Logger() { TellLeftOutBy(absl::InfiniteFuture()); }

void Logger::Emit(LogLevel level, absl::string_view event,
                  absl::string_view text) {
  if (settings_.format == config::LogFormat::kText) {
    logger_->log(ToSpdlog(level), "{}",
                 absl::StrCat("[", node_, "] ", event, ": ", OneLine(text)));
    return;
  }
  nlohmann::ordered_json line;
  line["time"] =
      absl::FormatTime(absl::RFC3339_full, clocks_.wall(), absl::UTCTimeZone());
  line["level"] = config::ToString(level);
  line["node"] = node_;
  line["event"] = std::string(event);
  line["message"] = OneLine(text);
  // Whatever a peer put into a text, the line stays valid JSON.
  logger_->log(
      ToSpdlog(level), "{}",
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void Logger::Write(LogLevel level, absl::string_view event,
                   absl::string_view text) {
  if (!logger_->should_log(ToSpdlog(level))) return;
  Window before;
  if (level != LogLevel::kDebug) {
    absl::MutexLock lock(&mutex_);
    Window& window = windows_[std::string(event)];
    const absl::Time now = clocks_.steady();
    if (now - window.start > kWindow) {
      before = std::exchange(window, Window());
      window.start = now;
    }
    if (window.written >= kLinesPerWindow) {
      ++window.left_out;
      window.level = level;
      window.last = std::string(text);
      return;
    }
    ++window.written;
  }
  if (before.left_out > 0) {
    Emit(before.level, event, LeftOutText(before.left_out, before.last));
  }
  Emit(level, event, text);
}

void Logger::Keep(LogLevel level, absl::string_view event,
                  absl::string_view text) {
  if (logger_->should_log(ToSpdlog(level))) Emit(level, event, text);
}

void Logger::SetLevel(LogLevel level) { logger_->set_level(ToSpdlog(level)); }

void Logger::TellLeftOut() { TellLeftOutBy(clocks_.steady()); }

void Logger::TellLeftOutBy(absl::Time now) {
  std::map<std::string, Window> over;
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [event, window] : windows_) {
      if (window.left_out == 0 || now - window.start <= kWindow) continue;
      over.emplace(event, std::exchange(window, Window{}));
    }
  }
  for (const auto& [event, window] : over) {
    Emit(window.level, event, LeftOutText(window.left_out, window.last));
  }
}

}  // namespace dfl::app
