// The updates of several daemons as one queue. Each daemon has a thread that
// watches it, and that starts again when the stream breaks.
#ifndef DFL_CLI_WATCH_FEED_H_
#define DFL_CLI_WATCH_FEED_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cli/context.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::cli {

// An update of target `index`, or why there is none.
struct FeedItem {
  size_t index = 0;
  std::optional<client::WatchUpdate> update;
  absl::Status status;
  // The target never answered and is not asked again.
  bool given_up = false;
};

// Items from several threads for one, which may read slowly or not at all: then
// those who push wait. Thread-safe.
class FeedQueue {
 public:
  static constexpr size_t kMaxItems = 256;

  // Waits for room. What comes after Stop is dropped.
  void Push(FeedItem item) ABSL_LOCKS_EXCLUDED(mutex_);
  // The next item, or nullopt after `wait`.
  std::optional<FeedItem> Next(absl::Duration wait) ABSL_LOCKS_EXCLUDED(mutex_);

  // Nobody waits any more.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopped() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for Stop, for `limit` at most.
  void AwaitStop(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  SteadyCondVar changed_;
  std::deque<FeedItem> items_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

class WatchFeed {
 public:
  WatchFeed(Context& context, absl::Duration interval);
  // Ends the streams and waits for their threads.
  ~WatchFeed();
  WatchFeed(const WatchFeed&) = delete;
  WatchFeed& operator=(const WatchFeed&) = delete;

  // The next item, or nullopt after `wait`. Whoever asks rarely holds up the
  // streams; the daemons then leave events out and say how many.
  std::optional<FeedItem> Next(absl::Duration wait) {
    return queue_.Next(wait);
  }

 private:
  void Run(size_t index);

  Context& context_;
  const absl::Duration interval_;
  FeedQueue queue_;
  std::vector<std::thread> threads_;
};

}  // namespace dfl::cli

#endif  // DFL_CLI_WATCH_FEED_H_
