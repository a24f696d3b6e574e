#include "daemon/app/event_loop.h"

#include <pthread.h>

#include <algorithm>
#include <memory>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "daemon/base/check.h"

namespace dfl::app {

EventLoop::EventLoop(const std::string& name)
    : time_base_(absl::Now()), steady_base_(SteadyNow()) {
  absl::Notification started;
  thread_ = std::thread([this, name, &started] {
    thread_id_ = std::this_thread::get_id();
    started.Notify();
    ThreadMain(name);
  });
  started.WaitForNotification();
}

absl::Time EventLoop::Now() const {
  return time_base_ + (SteadyNow() - steady_base_);
}

void EventLoop::Post(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  // A refused task dies with the argument, after the lock is gone.
  if (stopping_) return;
  posted_.push_back(std::move(task));
  changed_.Signal();
}

ports::TimerId EventLoop::After(absl::Duration delay,
                                std::function<void()> task) {
  DFL_CHECK(OnLoop());
  const ports::TimerId id = ++last_timer_;
  const absl::Time when = Now() + std::max(delay, absl::ZeroDuration());
  timers_.emplace(TimerKey(when, id), std::move(task));
  timer_times_.emplace(id, when);
  return id;
}

void EventLoop::Cancel(ports::TimerId timer) {
  DFL_CHECK(OnLoop());
  const auto found = timer_times_.find(timer);
  if (found == timer_times_.end()) return;
  // Its captures may call back when they die: first out of the maps.
  const auto dropped = timers_.extract(TimerKey(found->second, timer));
  timer_times_.erase(found);
}

bool EventLoop::RunAndWait(std::function<void()> task) {
  DFL_CHECK(!OnLoop());
  // Notified by the task's death, whether it ran or not.
  struct Outcome {
    bool ran = false;
    absl::Notification gone;
  };
  Outcome outcome;
  struct Guard {
    explicit Guard(Outcome* outcome) : outcome(outcome) {}
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() { outcome->gone.Notify(); }
    Outcome* outcome;
  };
  auto guard = std::make_shared<Guard>(&outcome);
  Post([guard, task = std::move(task)] {
    task();
    guard->outcome->ran = true;
  });
  guard.reset();
  outcome.gone.WaitForNotification();
  return outcome.ran;
}

void EventLoop::Stop() {
  DFL_CHECK(!OnLoop());
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.Signal();
  }
  if (thread_.joinable()) thread_.join();
  std::vector<std::function<void()>> posted;
  {
    absl::MutexLock lock(&mutex_);
    posted.swap(posted_);
  }
  posted.clear();
  std::map<TimerKey, std::function<void()>> timers;
  timers.swap(timers_);
  timer_times_.clear();
}

bool EventLoop::Stopping() const {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

void EventLoop::RunDueTimers() {
  // Timers set meanwhile wait for the next turn, so that a timer of delay 0
  // that sets itself again cannot starve the posted tasks.
  const absl::Time now = Now();
  const ports::TimerId last = last_timer_;
  while (!timers_.empty() && timers_.begin()->first.first <= now &&
         timers_.begin()->first.second <= last && !Stopping()) {
    auto node = timers_.extract(timers_.begin());
    timer_times_.erase(node.key().second);
    node.mapped()();
    turns_.fetch_add(1, std::memory_order_relaxed);
  }
}

void EventLoop::WaitForWork() {
  while (!Ready()) {
    if (timers_.empty()) {
      changed_.Wait(&mutex_);
      continue;
    }
    const absl::Duration left = timers_.begin()->first.first - Now();
    if (left <= absl::ZeroDuration()) return;
    changed_.WaitFor(&mutex_, left);
  }
}

void EventLoop::ThreadMain(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  std::vector<std::function<void()>> batch;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      WaitForWork();
      if (stopping_) return;
      batch.swap(posted_);
    }
    for (std::function<void()>& task : batch) {
      if (Stopping()) return;
      task();
      task = nullptr;
      turns_.fetch_add(1, std::memory_order_relaxed);
    }
    batch.clear();
    RunDueTimers();
  }
}

}  // namespace dfl::app
