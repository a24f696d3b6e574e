// The newest of a row of values, from one thread to others. The writer never
// waits for a reader.
#ifndef DFL_WEB_LATEST_H_
#define DFL_WEB_LATEST_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace dfl::web {

// Thread-safe.
template <typename T>
class Latest {
 public:
  // Takes the place of the value before. Where a reader is looking at this very
  // moment it is dropped, and the next one counts.
  void Offer(std::shared_ptr<const T> value) {
    if (!mutex_.TryLock()) return;
    value_.swap(value);
    mutex_.Unlock();
    // What was there before is freed here, after the lock is gone.
  }

  // Null: nothing was offered yet.
  std::shared_ptr<const T> Get() const {
    const absl::MutexLock lock(&mutex_);
    return value_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::shared_ptr<const T> value_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::web

#endif  // DFL_WEB_LATEST_H_
