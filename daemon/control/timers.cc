#include "daemon/control/timers.h"

#include <algorithm>

namespace dfl::control {

Timers::~Timers() {
  std::thread ending;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.Signal();
    ending.swap(thread_);
  }
  if (ending.joinable()) ending.join();
}

Timers::Id Timers::After(absl::Duration delay, std::function<void()> task) {
  const auto at =
      std::chrono::steady_clock::now() +
      absl::ToChronoNanoseconds(std::max(delay, absl::ZeroDuration()));
  absl::MutexLock lock(&mutex_);
  const Id id(at, next_++);
  tasks_.emplace(id, std::move(task));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.Signal();
  return id;
}

void Timers::Cancel(Id id) {
  std::function<void()> dropped;
  absl::MutexLock lock(&mutex_);
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  dropped = std::move(found->second);
  tasks_.erase(found);
}

void Timers::Run() {
  while (true) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      while (!stopping_) {
        if (tasks_.empty()) {
          changed_.Wait(&mutex_);
          continue;
        }
        const absl::Duration left = absl::FromChrono(
            tasks_.begin()->first.first - std::chrono::steady_clock::now());
        if (left <= absl::ZeroDuration()) break;
        changed_.WaitFor(&mutex_, left);
      }
      if (stopping_) return;
      task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
    }
    task();
  }
}

}  // namespace dfl::control
