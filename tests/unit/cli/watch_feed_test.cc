#include "cli/watch_feed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <thread>

#include "absl/time/time.h"

namespace dfl::cli {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

TEST(FeedQueue, AReaderThatStallsHoldsUpThoseWhoPush) {
  FeedQueue queue;
  std::atomic<size_t> pushed = 0;
  std::thread writer([&] {
    while (!queue.stopped()) {
      queue.Push({pushed, std::nullopt, absl::OkStatus(), false});
      ++pushed;
    }
  });
  size_t read = 0;
  for (int round = 0; round < 50; ++round) {
    // Full: the writer waits, however long nobody reads.
    while (pushed < read + FeedQueue::kMaxItems) std::this_thread::yield();
    EXPECT_LE(pushed, read + FeedQueue::kMaxItems);
    const auto item = queue.Next(kPatience);
    ASSERT_TRUE(item.has_value());
    EXPECT_EQ(item->index, read++);  // nothing is lost, and in order
  }
  queue.Stop();  // frees the writer
  writer.join();
  EXPECT_LE(pushed, read + FeedQueue::kMaxItems + 1);
}

TEST(FeedQueue, NextGivesUpAfterItsTime) {
  FeedQueue queue;
  EXPECT_FALSE(queue.Next(absl::Milliseconds(1)).has_value());
  queue.Push({3, std::nullopt, absl::OkStatus(), true});
  EXPECT_EQ(queue.Next(absl::ZeroDuration())->index, 3u);
}

}  // namespace
}  // namespace dfl::cli
