// The audit log: who called what on control, and how it ended. A file to which
// lines are only added, one JSON document each:
//
//   {"time": "2026-03-01T12:00:00.123Z", "who": "uid 0 (pid 4711)",
//    "role": "admin", "local": true, "what": "train pause", "result": "ok"}
//
// `result` is "ok", or the code and the text of the error. Nothing limits the
// number of lines. A file that was moved away is made anew by the next line.
#ifndef DFL_APP_AUDIT_LOG_H_
#define DFL_APP_AUDIT_LOG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/control/control_server.h"

namespace dfl::app {

// Thread-safe.
class AuditLog {
 public:
  // The file is made with the mode 0640. `on_failure` is called for each line
  // that could not be written, on the caller's thread.
  // Errors: as dfl::FileError.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(
      std::string path, std::function<void(const absl::Status&)> on_failure);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Returns when the line was handed to the system, or could not be.
  void Write(const control::AuditRecord& record, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A line of the connections that were refused since the last such line, by
  // reason, at most once a minute by `steady`, a clock that never steps. `now`
  // is what the line says. `totals` counts since the daemon started.
  void WriteRefusals(const std::map<std::string, int64_t>& totals,
                     absl::Time now, absl::Time steady)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  AuditLog(std::string path,
           std::function<void(const absl::Status&)> on_failure);

  void Append(absl::string_view line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OpenFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsInPlace() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const std::function<void(const absl::Status&)> on_failure_;
  absl::Mutex mutex_;
  int fd_ ABSL_GUARDED_BY(mutex_) = -1;
  // A line was cut off by a failure.
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, int64_t> told_ ABSL_GUARDED_BY(mutex_);
  absl::Time told_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace dfl::app

#endif  // DFL_APP_AUDIT_LOG_H_
