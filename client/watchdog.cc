#include "client/watchdog.h"

#include <utility>

namespace dfl {
namespace client {
namespace {

constexpr absl::Duration kStopPoll = absl::Milliseconds(100);

}  // namespace

Watchdog::Watchdog(grpc::ClientContext& context,
                   std::function<bool()> stop_requested)
    : context_(context),
      stop_requested_(std::move(stop_requested)),
      thread_([this] { Run(); }) {}

Watchdog::~Watchdog() {
  {
    const absl::MutexLock lock(&mutex_);
    done_ = true;
  }
  changed_.Signal();
  thread_.join();
}

void Watchdog::Await(absl::Duration longest) {
  const absl::MutexLock lock(&mutex_);
  due_ = SteadyNow() + longest;
}

void Watchdog::Run() {
  const absl::MutexLock lock(&mutex_);
  while (!done_) {
    if (stop_requested_ && stop_requested_()) {
      stopped_ = true;
    } else if (SteadyNow() >= due_) {
      timed_out_ = true;
    }
    if (stopped_ || timed_out_) {
      context_.TryCancel();
      return;
    }
    changed_.WaitFor(&mutex_, kStopPoll);
  }
}

}  // namespace client
}  // namespace dfl
