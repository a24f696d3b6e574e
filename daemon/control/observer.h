// What the control service needs of the daemon to tell a person what goes on:
// metrics, log, and what the daemon finds amiss. Without gRPC or protobuf: app
// implements it, tests have a fake.
#ifndef DFL_CONTROL_OBSERVER_H_
#define DFL_CONTROL_OBSERVER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace dfl::control {

enum class LogLevel { kDebug = 1, kInfo = 2, kWarning = 3, kError = 4 };

struct LogLine {
  int64_t id = 0;  // counts lines from 1
  absl::Time at;   // by the wall clock
  LogLevel level = LogLevel::kInfo;
  std::string event;
  std::string text;  // one line
  std::map<std::string, std::string> fields;
};

struct LogQuery {
  int64_t after = 0;  // only lines after this one
  int64_t limit = 1;  // the newest so many of them
  LogLevel level = LogLevel::kDebug;
};

struct LogPart {
  std::vector<LogLine> lines;  // in the order written
  int64_t forgotten = 0;       // lines after `after` that are not kept
};

struct LogLevels {
  LogLevel now = LogLevel::kInfo;
  LogLevel settings = LogLevel::kInfo;
  absl::Duration left;  // until `settings` is in force again; 0: it is
};

struct Finding {
  enum class Kind { kOk = 1, kWarning = 2, kFault = 3 };
  std::string check;  // what was looked at: "certificate"
  Kind kind = Kind::kOk;
  std::string text;
  std::string remedy;  // "": nothing is to be done
};

// Thread-safe. No call waits for the node's loop.
class Observer {
 public:
  virtual ~Observer() = default;

  // As /metrics has them.
  virtual std::string Metrics() = 0;
  virtual LogPart Log(const LogQuery& query) = 0;
  virtual LogLevels Levels() = 0;
  // From now on, for `time`.
  virtual void SetLevel(LogLevel level, absl::Duration time) = 0;
  // That of the settings.
  virtual void ResetLevel() = 0;
  // Looks at node and machine; may take a few hundred milliseconds.
  virtual std::vector<Finding> Diagnose() = 0;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_OBSERVER_H_
