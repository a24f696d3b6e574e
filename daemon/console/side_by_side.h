// Independent pieces of work on several threads, for programs that are
// otherwise single-threaded.
#ifndef DFL_CONSOLE_SIDE_BY_SIDE_H_
#define DFL_CONSOLE_SIDE_BY_SIDE_H_

#include <cstddef>
#include <functional>

#include "absl/synchronization/mutex.h"

namespace dfl::console {

// Processors of this machine, at least 1.
size_t Processors();

// Calls `work` with 0, 1, ... count - 1, in this order, `jobs` (>= 1) at a
// time, and returns when all calls have ended. No call begins once `go_on` is
// false.
void SideBySide(size_t count, size_t jobs,
                const std::function<void(size_t)>& work,
                const std::function<bool()>& go_on);

// Lets one thread in at a time.
class Turnstile {
 public:
  template <typename Work>
  auto operator()(Work work) {
    const absl::MutexLock lock(&mutex_);
    return work();
  }

 private:
  absl::Mutex mutex_;
};

}  // namespace dfl::console

#endif  // DFL_CONSOLE_SIDE_BY_SIDE_H_
