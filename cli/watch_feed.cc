#include "cli/watch_feed.h"

#include <chrono>
#include <utility>

namespace dfl::cli {
namespace {

constexpr std::chrono::seconds kBetweenAttempts(1);

}  // namespace

WatchFeed::WatchFeed(Context& context, absl::Duration interval)
    : context_(context), interval_(interval) {
  for (size_t i = 0; i < context.targets().size(); ++i) {
    threads_.emplace_back([this, i] { Run(i); });
  }
}

WatchFeed::~WatchFeed() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::optional<FeedItem> WatchFeed::Next(absl::Duration wait) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(wait),
                    [this] { return !items_.empty(); });
  if (items_.empty()) return std::nullopt;
  FeedItem item = std::move(items_.front());
  items_.pop_front();
  return item;
}

bool WatchFeed::Stopped() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stopped_;
}

void WatchFeed::Push(FeedItem item) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    items_.push_back(std::move(item));
  }
  changed_.notify_all();
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
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, kBetweenAttempts, [this] { return stopped_; });
  }
}

}  // namespace dfl::cli
