// One thread that runs functions at their times, by the steady clock. It starts
// with the first of them.
//
// Thread-safe. Functions run one at a time, in the order of their times, and
// must be quick; they may call At and Cancel.
#ifndef DFL_CONTROL_TIMERS_H_
#define DFL_CONTROL_TIMERS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::control {

class Timers {
 public:
  using Id = std::pair<std::chrono::steady_clock::time_point, uint64_t>;

  Timers() = default;
  // Tasks that have not begun never run.
  ~Timers();
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  // Runs `task` after `delay` (<= 0: as soon as it can).
  Id After(absl::Duration delay, std::function<void()> task)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops a task that has not begun. Does not wait for one that has.
  void Cancel(Id id) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  SteadyCondVar changed_;
  std::map<Id, std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_TIMERS_H_
