#include "daemon/app/worker.h"

#include <pthread.h>
#include <unistd.h>

#include <utility>

#include "daemon/threads/steady_cond_var.h"

namespace dfl::app {

Worker::Worker(ports::Loop& loop, const std::string& name, int niceness,
               std::function<void(absl::Duration)> measured)
    : loop_(loop),
      measured_(std::move(measured)),
      thread_([this, name, niceness] { ThreadMain(name, niceness); }) {}

void Worker::Run(std::function<void()> work, std::function<void()> done) {
  absl::MutexLock lock(&mutex_);
  // Refused work dies with the arguments, after the lock is gone.
  if (!stopping_) queue_.push_back(Item{std::move(work), std::move(done)});
}

void Worker::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
  std::deque<Item> dropped;
  {
    absl::MutexLock lock(&mutex_);
    dropped.swap(queue_);
  }
}

void Worker::ThreadMain(const std::string& name, int niceness) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  // Of this thread alone on Linux, and of those that it starts. To yield more
  // is allowed to everybody.
  if (niceness > 0) {
    [[maybe_unused]] const int now = nice(niceness);
  }
  while (true) {
    Item item;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &Worker::Ready));
      if (stopping_) return;
      item = std::move(queue_.front());
      queue_.pop_front();
    }
    const absl::Time began = measured_ ? SteadyNow() : absl::Time();
    item.work();
    if (measured_) measured_(SteadyNow() - began);
    item.work = nullptr;  // what it held goes before `done` is told
    loop_.Post(std::move(item.done));
  }
}

}  // namespace dfl::app
