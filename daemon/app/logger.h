// The daemon's log on stderr, as text or JSON, one line a fact. The same event
// more than a few times a second is counted instead of written.
#ifndef DFL_APP_LOGGER_H_
#define DFL_APP_LOGGER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/config/node_settings.h"

namespace spdlog {
class logger;  // NOLINT(readability-identifier-naming): its name
}  // namespace spdlog

namespace dfl::app {

// Thread-safe.
class Logger {
 public:
  Logger(const config::LogSettings& settings, std::string node);
  ~Logger();

  // `event` is a short fixed name, e.g. "link-down"; it is what is rate-limited
  // (20 lines in 10 s each).
  void Write(config::LogLevel level, absl::string_view event,
             absl::string_view text) ABSL_LOCKS_EXCLUDED(mutex_);
  void Info(absl::string_view event, absl::string_view text) {
    Write(config::LogLevel::kInfo, event, text);
  }
  void Warning(absl::string_view event, absl::string_view text) {
    Write(config::LogLevel::kWarning, event, text);
  }
  void Error(absl::string_view event, absl::string_view text) {
    Write(config::LogLevel::kError, event, text);
  }

 private:
  struct Window {
    absl::Time start;
    int64_t written = 0;
    int64_t left_out = 0;
  };

  void Emit(config::LogLevel level, absl::string_view event,
            absl::string_view text);

  const config::LogSettings settings_;
  const std::string node_;
  std::shared_ptr<spdlog::logger> logger_;
  absl::Mutex mutex_;
  std::map<std::string, Window, std::less<>> windows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::app

#endif  // DFL_APP_LOGGER_H_
