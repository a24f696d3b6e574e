#include "daemon/simports/sim_loop.h"

#include <algorithm>
#include <utility>

namespace dfl::simports {

void SimLoop::Post(std::function<void()> task) {
  if (stopped_) return;
  scheduler_.At(scheduler_.Now(), owner_, std::move(task));
}

ports::TimerId SimLoop::After(absl::Duration delay,
                              std::function<void()> task) {
  if (stopped_) return 0;
  return scheduler_.After(delay, owner_, std::move(task));
}

void SimLoop::Run(std::function<void()> work, std::function<void()> done) {
  if (stopped_) return;
  worker_free_ = std::max(worker_free_, scheduler_.Now()) + worker_delay_;
  scheduler_.At(worker_free_, owner_,
                [work = std::move(work), done = std::move(done)] {
                  work();
                  done();
                });
}

void SimLoop::Stop() {
  if (stopped_) return;  // nothing came since
  stopped_ = true;
  scheduler_.CancelOwned(owner_);
}

}  // namespace dfl::simports
