// A thread whose end is waited for with a limit: calls of the system's
// resolver, and of a service on the bus, cannot be broken off. Room-internal.
#ifndef DFL_DISCOVERY_LOOSE_THREAD_H_
#define DFL_DISCOVERY_LOOSE_THREAD_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/time/time.h"

namespace dfl::discovery {

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

}  // namespace dfl::discovery

#endif  // DFL_DISCOVERY_LOOSE_THREAD_H_
