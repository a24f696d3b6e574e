// ports::Worker on one thread: work in the order given, results posted back.
// The thread is there while there is work, and ends some seconds after the
// last: a node that does nothing keeps none.
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
#include "daemon/threads/steady_cond_var.h"

namespace dfl::app {

struct WorkerOptions {
  // The thread yields to others by so much more than the process does
  // (nice(2)); 0 or more.
  int niceness = 0;
  // It ends after so long without work.
  absl::Duration idle = absl::Seconds(10);
  // Is told on the thread what each piece of work took; may be null.
  std::function<void(absl::Duration)> measured = nullptr;
};

class Worker final : public ports::Worker {
 public:
  // `loop` must outlive it.
  Worker(ports::Loop& loop, std::string name, WorkerOptions options = {});
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

  void ThreadMain() ABSL_LOCKS_EXCLUDED(mutex_);
  // The next item; false: the thread is to end, and counts as ended.
  bool Take(Item* item) ABSL_LOCKS_EXCLUDED(mutex_);

  ports::Loop& loop_;
  const std::string name_;
  const WorkerOptions options_;
  absl::Mutex mutex_;
  SteadyCondVar changed_;
  std::deque<Item> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;  // thread_ takes work
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::app

#endif  // DFL_APP_WORKER_H_
