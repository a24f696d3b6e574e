// The daemon's log on stderr, as text or JSON, one line a fact.
//
// What may come often is limited: of an event, 20 lines in 10 s are written,
// the others are counted, and their number and the last of them are told when
// the 10 s are over. What must leave a record is never limited.
//
// Whatever a text holds (peers' words are in many), it stays one line, and
// nothing in it moves a terminal's cursor or turns its direction.
#ifndef DFL_APP_LOGGER_H_
#define DFL_APP_LOGGER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/config/node_settings.h"
#include "daemon/threads/steady_cond_var.h"

namespace spdlog {
class logger;  // NOLINT(readability-identifier-naming): its name
}  // namespace spdlog

namespace dfl::app {

// Limits go by `steady`, which never steps; lines say `wall`.
struct LogClocks {
  std::function<absl::Time()> steady = SteadyNow;
  std::function<absl::Time()> wall = absl::Now;
};

// Thread-safe.
class Logger {
 public:
  Logger(const config::LogSettings& settings, std::string node,
         LogClocks clocks = {});
  ~Logger();

  // `event` is a short fixed name, e.g. "link-down"; it is what is limited.
  void Write(config::LogLevel level, absl::string_view event,
             absl::string_view text) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same without a limit, for what must leave a record: changes that
  // somebody made.
  void Keep(config::LogLevel level, absl::string_view event,
            absl::string_view text);
  // From here on.
  void SetLevel(config::LogLevel level);
  // Tells what was left out in times that are over. Called now and then; the
  // destructor tells the rest.
  void TellLeftOut() ABSL_LOCKS_EXCLUDED(mutex_);

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
    absl::Time start = absl::InfinitePast();
    int64_t written = 0;
    int64_t left_out = 0;
    // Of the last one that was left out.
    config::LogLevel level = config::LogLevel::kInfo;
    std::string last;
  };

  void TellLeftOutBy(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Emit(config::LogLevel level, absl::string_view event,
            absl::string_view text);

  const config::LogSettings settings_;
  const std::string node_;
  const LogClocks clocks_;
  std::shared_ptr<spdlog::logger> logger_;
  absl::Mutex mutex_;
  std::map<std::string, Window, std::less<>> windows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::app

#endif  // DFL_APP_LOGGER_H_
