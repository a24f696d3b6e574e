// A condition variable for absl::Mutex whose time limits go by the steady
// clock, and that clock's time. Abseil's own waits go by the wall clock on some
// systems: a clock that is set back by an hour makes them an hour late.
#ifndef DFL_THREADS_STEADY_COND_VAR_H_
#define DFL_THREADS_STEADY_COND_VAR_H_

#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace dfl {

// Now on a clock that never steps. Only differences mean something.
absl::Time SteadyNow();

// Thread-safe. As with any condition variable, a wait may end without a
// signal: callers look at their condition in a loop.
class SteadyCondVar {
 public:
  void Signal() { changed_.notify_one(); }
  void SignalAll() { changed_.notify_all(); }

  // Releases `mutex`, waits for a signal, and takes it again.
  void Wait(absl::Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The same for at most `limit`.
  void WaitFor(absl::Mutex* mutex, absl::Duration limit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  std::condition_variable_any changed_;
};

}  // namespace dfl

#endif  // DFL_THREADS_STEADY_COND_VAR_H_
