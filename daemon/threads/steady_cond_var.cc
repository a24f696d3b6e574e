#include "daemon/threads/steady_cond_var.h"

#include <algorithm>
#include <chrono>

namespace dfl {
namespace {

// Longer waits are cut into pieces, which callers cannot tell from a signal.
constexpr absl::Duration kLongestWait = absl::Hours(24);

// An absl::Mutex under the names that the standard library calls.
class StandardLock {
 public:
  explicit StandardLock(absl::Mutex* mutex) : mutex_(mutex) {}
  void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_->Lock(); }
  void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_->Unlock(); }

 private:
  absl::Mutex* mutex_;
};

}  // namespace

absl::Time SteadyNow() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return absl::UnixEpoch() +
         absl::FromChrono(
             std::chrono::duration_cast<std::chrono::nanoseconds>(now));
}

void SteadyCondVar::Wait(absl::Mutex* mutex) {
  StandardLock lock(mutex);
  changed_.wait(lock);
}

void SteadyCondVar::WaitFor(absl::Mutex* mutex, absl::Duration limit) {
  const auto bounded = absl::ToChronoNanoseconds(
      std::clamp(limit, absl::ZeroDuration(), kLongestWait));
  StandardLock lock(mutex);
  changed_.wait_until(lock, std::chrono::steady_clock::now() + bounded);
}

}  // namespace dfl
