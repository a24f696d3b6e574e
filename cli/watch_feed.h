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

namespace dfl::cli {

// An update of target `index`, or why there is none.
struct FeedItem {
  size_t index = 0;
  std::optional<client::WatchUpdate> update;
  absl::Status status;
  // The target never answered and is not asked again.
  bool given_up = false;
};

class WatchFeed {
 public:
  WatchFeed(Context& context, absl::Duration interval);
  // Ends the streams and waits for their threads.
  ~WatchFeed();
  WatchFeed(const WatchFeed&) = delete;
  WatchFeed& operator=(const WatchFeed&) = delete;

  // The next item, or nullopt after `wait`.
  std::optional<FeedItem> Next(absl::Duration wait);

 private:
  void Run(size_t index);
  bool Stopped();
  void Push(FeedItem item);

  Context& context_;
  const absl::Duration interval_;
  absl::Mutex mutex_;
  std::deque<FeedItem> items_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace dfl::cli

#endif  // DFL_CLI_WATCH_FEED_H_
