// The newest lines of the log, for who asks later.
#ifndef DFL_APP_EYES_LOG_TAIL_H_
#define DFL_APP_EYES_LOG_TAIL_H_

#include <array>
#include <cstdint>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/control/observer.h"

namespace dfl::app {

// Thread-safe.
class LogTail {
 public:
  static constexpr size_t kLines = 2000;

  // Gives the line its id.
  void Add(control::LogLine line) ABSL_LOCKS_EXCLUDED(mutex_);
  control::LogPart Read(const control::LogQuery& query) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Lines that were written, by level, from kDebug on.
  std::array<int64_t, 4> Counts() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<control::LogLine> lines_ ABSL_GUARDED_BY(mutex_);
  std::array<int64_t, 4> counts_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace dfl::app

#endif  // DFL_APP_EYES_LOG_TAIL_H_
