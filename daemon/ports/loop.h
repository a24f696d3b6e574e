// Ports: time and order of execution. A node lives on one loop and is only
// touched there, so it needs no locks.
//
// Implementations: app/event_loop.h (a thread) and simports/sim_loop.h (virtual
// time).
#ifndef DFL_PORTS_LOOP_H_
#define DFL_PORTS_LOOP_H_

#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace dfl::ports {

using TimerId = uint64_t;  // 0 is never a timer

class Loop {
 public:
  virtual ~Loop() = default;

  // Now on a clock that never steps (not the wall clock). Thread-safe.
  virtual absl::Time Now() const = 0;

  // Runs `task` on the loop, after everything posted before. Thread-safe.
  // Tasks posted after the loop stopped are destroyed without running.
  virtual void Post(std::function<void()> task) = 0;

  // Runs `task` on the loop once, `delay` from now (<= 0: as soon as possible,
  // never from inside this call). Loop only.
  virtual TimerId After(absl::Duration delay, std::function<void()> task) = 0;

  // Forgets a timer; one that already ran or is unknown is ignored. Loop only.
  virtual void Cancel(TimerId timer) = 0;
};

// A place for work that must not hold up the loop (encoding from snapshots).
// Implementations: app/worker.h (one thread), simports/sim_loop.h (inline).
class Worker {
 public:
  virtual ~Worker() = default;

  // Runs `work` off the loop, in order, then `done` on the loop. Loop only.
  virtual void Run(std::function<void()> work, std::function<void()> done) = 0;
};

}  // namespace dfl::ports

#endif  // DFL_PORTS_LOOP_H_
