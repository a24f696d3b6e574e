// ports::Loop on a thread of its own: tasks in the order posted, timers by
// time. The clock is the machine's steady one, mapped once to absl::Time; a
// wall clock that is set moves no timer.
#ifndef DFL_APP_EVENT_LOOP_H_
#define DFL_APP_EVENT_LOOP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/ports/loop.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::app {

class EventLoop final : public ports::Loop {
 public:
  // Starts the thread; `name` (at most 15 characters) is what top -H shows.
  explicit EventLoop(const std::string& name);
  ~EventLoop() override { Stop(); }
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  absl::Time Now() const override;
  void Post(std::function<void()> task) override ABSL_LOCKS_EXCLUDED(mutex_);
  ports::TimerId After(absl::Duration delay,
                       std::function<void()> task) override;
  void Cancel(ports::TimerId timer) override;

  // Posts `task` and returns when it has run; false when the loop stopped
  // before. Not on the loop.
  bool RunAndWait(std::function<void()> task);

  // Ends the thread after the task that is running; the others are destroyed
  // without running before it returns. Idempotent; not on the loop.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  bool OnLoop() const { return std::this_thread::get_id() == thread_id_; }

  // Tasks and timers run so far: a loop that is stuck stops counting.
  // Thread-safe.
  int64_t turns() const { return turns_.load(std::memory_order_relaxed); }

 private:
  using TimerKey = std::pair<absl::Time, ports::TimerId>;

  void ThreadMain(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when there is something to do.
  void WaitForWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Ready() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !posted_.empty();
  }
  void RunDueTimers() ABSL_LOCKS_EXCLUDED(mutex_);
  bool Stopping() const ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Time time_base_;
  const absl::Time steady_base_;
  std::atomic<int64_t> turns_{0};

  mutable absl::Mutex mutex_;
  SteadyCondVar changed_;
  std::vector<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // Touched on the loop, and by Stop once the thread has ended.
  ports::TimerId last_timer_ = 0;
  std::map<TimerKey, std::function<void()>> timers_;
  std::map<ports::TimerId, absl::Time> timer_times_;

  std::thread thread_;
  std::thread::id thread_id_;
};

}  // namespace dfl::app

#endif  // DFL_APP_EVENT_LOOP_H_
