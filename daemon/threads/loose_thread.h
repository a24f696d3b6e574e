// A thread whose end is waited for with a limit: a call of the system's
// resolver or of a service on the bus, and a large file that is being read,
// cannot be broken off.
#ifndef DFL_THREADS_LOOSE_THREAD_H_
#define DFL_THREADS_LOOSE_THREAD_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/time/time.h"

namespace dfl {

// Thread-compatible.
class LooseThread {
 public:
  // `body` must own all that it touches.
  explicit LooseThread(std::function<void()> body);
  // End must have been called.
  ~LooseThread() = default;
  LooseThread(const LooseThread&) = delete;
  LooseThread& operator=(const LooseThread&) = delete;

  // Waits until it ends; after `patience` it is left to itself. Idempotent.
  void End(absl::Duration patience);

 private:
  struct Shared;

  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace dfl

#endif  // DFL_THREADS_LOOSE_THREAD_H_
