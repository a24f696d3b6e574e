#include "daemon/app/logger.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
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

}  // namespace

Logger::Logger(const config::LogSettings& settings, std::string node)
    : settings_(settings),
      node_(std::move(node)),
      logger_(std::make_shared<spdlog::logger>(
          "dfld", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_level(ToSpdlog(settings.level));
  logger_->set_pattern(settings.format == config::LogFormat::kJson
                           ? "%v"
                           : "%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger_->flush_on(spdlog::level::debug);
}

Logger::~Logger() = default;

void Logger::Emit(LogLevel level, absl::string_view event,
                  absl::string_view text) {
  if (settings_.format == config::LogFormat::kText) {
    logger_->log(ToSpdlog(level), "{}",
                 absl::StrCat("[", node_, "] ", event, ": ", text));
    return;
  }
  nlohmann::ordered_json line;
  line["time"] =
      absl::FormatTime(absl::RFC3339_full, absl::Now(), absl::UTCTimeZone());
  line["level"] = config::ToString(level);
  line["node"] = node_;
  line["event"] = std::string(event);
  line["message"] = std::string(text);
  // Whatever a peer put into a text, the line stays valid JSON.
  logger_->log(
      ToSpdlog(level), "{}",
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void Logger::Write(LogLevel level, absl::string_view event,
                   absl::string_view text) {
  if (!logger_->should_log(ToSpdlog(level))) return;
  int64_t left_out = 0;
  if (level != LogLevel::kDebug) {
    absl::MutexLock lock(&mutex_);
    Window& window = windows_[std::string(event)];
    const absl::Time now = absl::Now();
    if (now - window.start > kWindow) {
      left_out = window.left_out;
      window = Window{now, 0, 0};
    }
    if (window.written >= kLinesPerWindow) {
      ++window.left_out;
      return;
    }
    ++window.written;
  }
  if (left_out > 0) {
    Emit(level, event, absl::StrCat(left_out, " more like this were left out"));
  }
  Emit(level, event, text);
}

}  // namespace dfl::app
