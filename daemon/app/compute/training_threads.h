// The number of training threads now, and why: what the settings say, or what
// ChooseThreads makes of the load of others. That is looked at when somebody
// asks: 1, 2, 4, ... seconds after one another and then every minute. So a node
// that does not train reads nothing.
#ifndef DFL_APP_COMPUTE_TRAINING_THREADS_H_
#define DFL_APP_COMPUTE_TRAINING_THREADS_H_

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/app/compute/thread_policy.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::app {

// Thread-safe.
class TrainingThreads {
 public:
  // `set`: of the settings, 0: choose. `read` gives a reading of now, whose
  // time is that of `clock`.
  TrainingThreads(int set, CpuBounds bounds, std::function<CpuReading()> read,
                  std::function<absl::Time()> clock = SteadyNow);

  // What holds now; reads when it is time for it.
  int Now() ABSL_LOCKS_EXCLUDED(mutex_);
  // What held when Now was last asked.
  ThreadChoice choice() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const bool chosen_;  // not by the settings
  const CpuBounds bounds_;
  const std::function<CpuReading()> read_;
  const std::function<absl::Time()> clock_;

  mutable absl::Mutex mutex_;
  ThreadChoice choice_ ABSL_GUARDED_BY(mutex_);
  CpuReading last_ ABSL_GUARDED_BY(mutex_);
  absl::Duration wait_ ABSL_GUARDED_BY(mutex_);  // from last_ to the next one
};

}  // namespace dfl::app

#endif  // DFL_APP_COMPUTE_TRAINING_THREADS_H_
