#include "daemon/app/worker.h"

#include <pthread.h>
#include <unistd.h>

#include <utility>

#include "daemon/threads/steady_cond_var.h"

namespace dfl::app {

Worker::Worker(ports::Loop& loop, std::string name, WorkerOptions options)
    : loop_(loop), name_(std::move(name)), options_(std::move(options)) {}

void Worker::Run(std::function<void()> work, std::function<void()> done) {
  absl::MutexLock lock(&mutex_);
  // Refused work dies with the arguments, after the lock is gone.
  if (stopping_) return;
  queue_.push_back(Item{std::move(work), std::move(done)});
  if (running_) {
    changed_.Signal();
    return;
  }
  // One that ended does not take the lock again.
  if (thread_.joinable()) thread_.join();
  running_ = true;
  thread_ = std::thread([this] { ThreadMain(); });
}

void Worker::Stop() {
  std::thread ending;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.Signal();
    ending.swap(thread_);
  }
  if (ending.joinable()) ending.join();
  std::deque<Item> dropped;
  {
    absl::MutexLock lock(&mutex_);
    dropped.swap(queue_);
  }
}

bool Worker::Take(Item* item) {
  absl::MutexLock lock(&mutex_);
  const absl::Time end = SteadyNow() + options_.idle;
  while (!stopping_ && queue_.empty()) {
    const absl::Duration left = end - SteadyNow();
    if (left <= absl::ZeroDuration()) break;
    changed_.WaitFor(&mutex_, left);
  }
  if (stopping_ || queue_.empty()) {
    running_ = false;
    return false;
  }
  *item = std::move(queue_.front());
  queue_.pop_front();
  return true;
}

void Worker::ThreadMain() {
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  // Of this thread alone on Linux, and of those that it starts. To yield more
  // is allowed to everybody.
  if (options_.niceness > 0) {
    [[maybe_unused]] const int now = nice(options_.niceness);
  }
  Item item;
  while (Take(&item)) {
    const absl::Time began = options_.measured ? SteadyNow() : absl::Time();
    item.work();
    if (options_.measured) options_.measured(SteadyNow() - began);
    item.work = nullptr;  // what it held goes before `done` is told
    loop_.Post(std::move(item.done));
    item.done = nullptr;
  }
}

}  // namespace dfl::app
