// A node's loop and worker in virtual time. All nodes of a simulated network
// share one SimScheduler; each has a SimLoop of its own, so that a crash takes
// along everything that node had planned.
#ifndef DFL_SIMPORTS_SIM_LOOP_H_
#define DFL_SIMPORTS_SIM_LOOP_H_

#include <functional>

#include "absl/time/time.h"
#include "daemon/ports/loop.h"
#include "daemon/simports/sim_scheduler.h"

namespace dfl::simports {

// Single-threaded, as its scheduler, which must outlive it.
class SimLoop final : public ports::Loop, public ports::Worker {
 public:
  explicit SimLoop(SimScheduler& scheduler)
      : scheduler_(scheduler), owner_(scheduler.NewOwner()) {}
  ~SimLoop() override { Stop(); }
  SimLoop(const SimLoop&) = delete;
  SimLoop& operator=(const SimLoop&) = delete;

  absl::Time Now() const override { return scheduler_.Now(); }
  void Post(std::function<void()> task) override;
  ports::TimerId After(absl::Duration delay,
                       std::function<void()> task) override;
  void Cancel(ports::TimerId timer) override { scheduler_.Cancel(timer); }

  // As ports::Worker. `work` runs in an event of its own, `worker_delay` from
  // now and after the work before it, so that a caller who changes what the
  // work reads is found out; `done` follows at the same time.
  void Run(std::function<void()> work, std::function<void()> done) override;
  void set_worker_delay(absl::Duration delay) { worker_delay_ = delay; }

  // Drops all tasks, timers and work, and all that is posted from here on.
  void Stop();
  bool stopped() const { return stopped_; }

  // Between the two nothing runs here, timers and work included, as in a
  // process that its system has stopped. What was due runs at Thaw.
  void Freeze() { scheduler_.Hold(owner_); }
  void Thaw() { scheduler_.Release(owner_); }

  SimScheduler& scheduler() { return scheduler_; }

 private:
  SimScheduler& scheduler_;
  const SimScheduler::OwnerId owner_;
  bool stopped_ = false;
  absl::Duration worker_delay_;
  absl::Time worker_free_ = absl::InfinitePast();
};

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_SIM_LOOP_H_
