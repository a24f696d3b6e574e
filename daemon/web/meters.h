// What is counted and timed while the daemon runs, read by a scrape without a
// lock. Whoever does the work writes; all numbers are atomic.
#ifndef DFL_WEB_METERS_H_
#define DFL_WEB_METERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace dfl::web {

// A count that only rises, and a gauge.
using Count = std::atomic<int64_t>;

// How often something took how long, in seconds. Thread-safe.
class TimeHistogram {
 public:
  // The upper bounds of the buckets; a last one has none.
  static constexpr std::array<double, 13> kBounds = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60};

  void Observe(absl::Duration took);

  // Not of one moment: what is observed meanwhile may be in one of the numbers
  // and not in another. `count` is the sum of `buckets`.
  struct Values {
    std::array<uint64_t, kBounds.size() + 1> buckets{};  // each for itself
    uint64_t count = 0;
    double sum = 0;  // seconds
  };
  Values Read() const;

 private:
  std::array<std::atomic<uint64_t>, kBounds.size() + 1> buckets_{};
  std::atomic<int64_t> nanoseconds_{0};
};

struct Meters {
  TimeHistogram step;      // from the end of a step to that of the next
  TimeHistogram gradient;  // of one mini-batch
  TimeHistogram mix;       // the algorithm's own work in a step
  TimeHistogram wait;      // the rest of a step: for neighbours
  TimeHistogram encode;    // of a piece of work of the encoding thread
  TimeHistogram exchange;  // from a model's announcement until it was taken

  Count frames_sent{0};
  Count frames_received{0};
  Count transfers_resumed{0};
};

}  // namespace dfl::web

#endif  // DFL_WEB_METERS_H_
