#include "cli/watch_feed.h"

#include <utility>

namespace dfl::cli {
namespace {

constexpr absl::Duration kBetweenAttempts = absl::Seconds(1);

}  // namespace

WatchFeed::WatchFeed(Context& context, absl::Duration interval)
    : context_(context), interval_(interval) {
  for (size_t i = 0; i < context.targets().size(); ++i) {
    threads_.emplace_back([this, i] { Run(i); });
  }
}

WatchFeed::~WatchFeed() {
  {
    const absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

std::optional<FeedItem> WatchFeed::Next(absl::Duration wait) {
  const absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(
      absl::Condition(
          +[](std::deque<FeedItem>* items) { return !items->empty(); },
          &items_),
      wait);
  if (items_.empty()) return std::nullopt;
  FeedItem item = std::move(items_.front());
  items_.pop_front();
  return item;
}

bool WatchFeed::Stopped() {
  const absl::MutexLock lock(&mutex_);
  return stopped_;
}

void WatchFeed::Push(FeedItem item) {
  const absl::MutexLock lock(&mutex_);
  items_.push_back(std::move(item));
}

void WatchFeed::Run(size_t index) {
  bool answered = false;
  while (!Stopped()) {
    const absl::Status status = context_.Client(index).Watch(
        interval_,
        [&](const client::WatchUpdate& update) {
          answered = true;
          Push({index, update, absl::OkStatus(), false});
          return true;
        },
        [this] { return Stopped(); });
    if (status.ok()) return;
    // Who was there will be back; who never was is an error of the caller.
    const bool given_up = !answered || !absl::IsUnavailable(status);
    Push({index, std::nullopt, status, given_up});
    if (given_up) return;
    const absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&stopped_), kBetweenAttempts);
  }
}

}  // namespace dfl::cli
