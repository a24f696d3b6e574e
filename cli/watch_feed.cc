#include "cli/watch_feed.h"

#include <utility>

namespace dfl::cli {
namespace {

constexpr absl::Duration kBetweenAttempts = absl::Seconds(1);

}  // namespace

void FeedQueue::Push(FeedItem item) {
  const absl::MutexLock lock(&mutex_);
  while (!stopped_ && items_.size() >= kMaxItems) changed_.Wait(&mutex_);
  if (stopped_) return;
  items_.push_back(std::move(item));
  changed_.SignalAll();
}

std::optional<FeedItem> FeedQueue::Next(absl::Duration wait) {
  const absl::MutexLock lock(&mutex_);
  const absl::Time until = SteadyNow() + wait;
  while (items_.empty()) {
    const absl::Duration left = until - SteadyNow();
    if (left <= absl::ZeroDuration()) return std::nullopt;
    changed_.WaitFor(&mutex_, left);
  }
  FeedItem item = std::move(items_.front());
  items_.pop_front();
  changed_.SignalAll();
  return item;
}

void FeedQueue::Stop() {
  const absl::MutexLock lock(&mutex_);
  stopped_ = true;
  changed_.SignalAll();
}

bool FeedQueue::stopped() const {
  const absl::MutexLock lock(&mutex_);
  return stopped_;
}

void FeedQueue::AwaitStop(absl::Duration limit) {
  const absl::MutexLock lock(&mutex_);
  const absl::Time until = SteadyNow() + limit;
  while (!stopped_ && SteadyNow() < until) {
    changed_.WaitFor(&mutex_, until - SteadyNow());
  }
}

WatchFeed::WatchFeed(Context& context, absl::Duration interval)
    : context_(context), interval_(interval) {
  for (size_t i = 0; i < context.targets().size(); ++i) {
    threads_.emplace_back([this, i] { Run(i); });
  }
}

WatchFeed::~WatchFeed() {
  queue_.Stop();
  for (std::thread& thread : threads_) thread.join();
}

void WatchFeed::Run(size_t index) {
  bool answered = false;
  while (!queue_.stopped()) {
    const absl::Status status = context_.Client(index).Watch(
        interval_,
        [&](const client::WatchUpdate& update) {
          answered = true;
          queue_.Push({index, update, absl::OkStatus(), false});
          return true;
        },
        [this] { return queue_.stopped(); });
    if (status.ok()) return;
    // Who was there will be back; who never was is an error of the caller.
    const bool back_later =
        absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
    const bool given_up = !answered || !back_later;
    queue_.Push({index, std::nullopt, status, given_up});
    if (given_up) return;
    queue_.AwaitStop(kBetweenAttempts);
  }
}

}  // namespace dfl::cli
