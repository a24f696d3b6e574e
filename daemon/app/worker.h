// ports::Worker on one thread: work in the order given, results posted back.
#ifndef DFL_APP_WORKER_H_
#define DFL_APP_WORKER_H_

#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/ports/loop.h"

namespace dfl::app {

class Worker final : public ports::Worker {
 public:
  // Starts the thread, which yields to others by `niceness` more than the
  // process does (nice(2)), 0 or more. `loop` must outlive it.
  // `measured` is told on the thread what each piece of work took; may be null.
  Worker(ports::Loop& loop, const std::string& name, int niceness = 0,
         std::function<void(absl::Duration)> measured = nullptr);
  ~Worker() override { Stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void Run(std::function<void()> work, std::function<void()> done) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the thread after the work under way; what waits is destroyed without
  // running. Idempotent; not on the worker's thread.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Item {
    std::function<void()> work;
    std::function<void()> done;
  };

  void ThreadMain(const std::string& name, int niceness)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool Ready() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !queue_.empty();
  }

  ports::Loop& loop_;
  const std::function<void(absl::Duration)> measured_;
  absl::Mutex mutex_;
  std::deque<Item> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace dfl::app

#endif  // DFL_APP_WORKER_H_
