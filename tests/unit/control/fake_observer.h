// A scripted control::Observer.
#ifndef DFL_TESTS_UNIT_CONTROL_FAKE_OBSERVER_H_
#define DFL_TESTS_UNIT_CONTROL_FAKE_OBSERVER_H_

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/control/observer.h"

namespace dfl::control {

// Thread-safe, but for its public members: set them before it is asked.
class FakeObserver final : public Observer {
 public:
  std::string Metrics() override { return metrics; }
  LogPart Log(const LogQuery& query) override {
    LogPart part;
    for (const LogLine& line : lines) {
      if (line.id > query.after && line.level >= query.level) {
        part.lines.push_back(line);
      }
    }
    if (static_cast<int64_t>(part.lines.size()) > query.limit) {
      part.lines.erase(part.lines.begin(), part.lines.end() - query.limit);
    }
    part.forgotten = 4;
    return part;
  }
  LogLevels Levels() override {
    const absl::MutexLock lock(&mutex_);
    return levels_;
  }
  void SetLevel(LogLevel level, absl::Duration time) override {
    const absl::MutexLock lock(&mutex_);
    levels_.now = level;
    levels_.left = time;
  }
  void ResetLevel() override {
    const absl::MutexLock lock(&mutex_);
    levels_ = {};
  }
  std::vector<Finding> Diagnose() override { return findings; }

  std::string metrics =
      "# HELP dfl_steps Steps.\n# TYPE dfl_steps gauge\n"
      "dfl_steps 7\ndfl_rounds 2\n";
  std::vector<LogLine> lines = {{1,
                                 absl::FromUnixSeconds(1800000000),
                                 LogLevel::kInfo,
                                 "link-up",
                                 "bert at 192.0.2.7:7600",
                                 {{"peer", "bert"}}},
                                {2,
                                 absl::FromUnixSeconds(1800000001),
                                 LogLevel::kWarning,
                                 "link-down",
                                 "bert: gone",
                                 {{"peer", "bert"}}}};
  std::vector<Finding> findings = {
      {"disk", Finding::Kind::kOk, "1000 MiB are free", ""}};

 private:
  absl::Mutex mutex_;
  LogLevels levels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::control

#endif  // DFL_TESTS_UNIT_CONTROL_FAKE_OBSERVER_H_
