// The daemon's log on stderr, as text or JSON, one line a fact.
//
// What may come often is limited: of an event, 20 lines in 10 s are written,
// the others are counted, and their number and the last of them are told when
// the 10 s are over. Of evaluations one line is written in 10 s. What must
// leave a record, and changes of the node's state, are never limited.
//
// Whatever a text holds (peers' words are in many), it stays one line, and
// nothing in it moves a terminal's cursor or turns its direction.
//
// Under systemd, where stderr is the journal, each line begins with its
// priority ("<4>", sd-daemon(3)), and text has no time: the journal has both.
#ifndef DFL_APP_LOGGER_H_
#define DFL_APP_LOGGER_H_

#include <array>
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
#include "daemon/app/eyes/log_tail.h"
#include "daemon/config/node_settings.h"
#include "daemon/control/observer.h"
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

// More about a fact than its text: names and values, "peer": "anna".
using LogFields = std::map<std::string, std::string>;

// Whether `fd` is the journal's stream, as JOURNAL_STREAM has it; "": it is
// not set.
bool IsJournal(int fd, absl::string_view journal_stream);

// Thread-safe.
class Logger {
 public:
  // `journal`: stderr is the journal.
  Logger(const config::LogSettings& settings, std::string node,
         LogClocks clocks = {}, bool journal = StderrIsJournal());
  ~Logger();

  // `event` is a short fixed name, e.g. "link-down"; it is what is limited.
  void Write(config::LogLevel level, absl::string_view event,
             absl::string_view text, const LogFields& fields = {})
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The same without a limit, for what must leave a record: changes that
  // somebody made, and those of the node's state.
  void Keep(config::LogLevel level, absl::string_view event,
            absl::string_view text, const LogFields& fields = {});
  // Tells what was left out in times that are over, and takes back a level
  // whose time is over. Called now and then; the destructor tells the rest.
  void TellLeftOut() ABSL_LOCKS_EXCLUDED(mutex_);

  // That of the settings, from here on.
  void SetLevel(config::LogLevel level) ABSL_LOCKS_EXCLUDED(mutex_);
  // For `time` from here on, whatever the settings say.
  void SetLevelFor(config::LogLevel level, absl::Duration time)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The settings' level is in force again.
  void ResetLevel() ABSL_LOCKS_EXCLUDED(mutex_);
  control::LogLevels Levels() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The newest lines, as they were written.
  const LogTail& tail() const { return tail_; }

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
  struct Line {
    config::LogLevel level = config::LogLevel::kInfo;
    std::string text;
    LogFields fields;
  };
  struct Window {
    absl::Time start = absl::InfinitePast();
    int64_t written = 0;
    int64_t left_out = 0;
    Line last;  // that was left out
  };

  static bool StderrIsJournal();

  void TellLeftOutBy(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // What is told of a time that is over; `event` is that of the window.
  void EmitLeftOut(absl::string_view event, const Window& window);
  void Emit(const Line& line, absl::string_view event);
  void PutLevelInForce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const config::LogSettings settings_;
  const std::string node_;
  const LogClocks clocks_;
  const bool journal_;
  std::shared_ptr<spdlog::logger> logger_;
  LogTail tail_;
  mutable absl::Mutex mutex_;
  config::LogLevel settings_level_ ABSL_GUARDED_BY(mutex_);
  // The level for a while, and when that is over; InfinitePast: none is.
  config::LogLevel other_level_ ABSL_GUARDED_BY(mutex_);
  absl::Time other_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::map<std::string, Window, std::less<>> windows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::app

#endif  // DFL_APP_LOGGER_H_
