// What the page draws over time, in bounded memory: fine for the last minutes,
// coarser the older, for a week. docs/page.md has the spans.
//
// Time is seconds since the daemon started, by a clock that never steps: the
// page counts back from now, so neither the box's clock nor the viewer's need
// be right.
#ifndef DFL_PAGE_HISTORY_H_
#define DFL_PAGE_HISTORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace dfl::page {

enum class Column : size_t {
  kStep,            // finished steps
  kRound,           // finished rounds
  kLoss,            // training loss, smoothed
  kTestLoss,        // of the last evaluation
  kAccuracy,        // of the last evaluation, in [0, 1]
  kConsensus,       // distance to the neighbours' models
  kBytesSent,       // since the start
  kDenseBytesSent,  // what the same models would have taken as dense fp32
  kBytesReceived,   // since the start
  kStepsPerSecond,
  kMixing,  // neighbours that models are exchanged with
  kLag,     // steps that the last of them is behind; negative: ahead
};
inline constexpr size_t kColumns = 12;

// The column's name in the JSON.
const char* NameOf(Column column);

// One moment. What is not there is NaN.
struct Point {
  double at_s = 0;
  std::array<double, kColumns> values = Nothing();

  double& operator[](Column column) {
    return values[static_cast<size_t>(column)];
  }
  double operator[](Column column) const {
    return values[static_cast<size_t>(column)];
  }

 private:
  static constexpr std::array<double, kColumns> Nothing() {
    std::array<double, kColumns> nothing{};
    for (double& value : nothing) {
      value = std::numeric_limits<double>::quiet_NaN();
    }
    return nothing;
  }
};

// {"t":[1.0,2.0],"step":[10,20],"loss":[0.5,null],...}: one array a column,
// with five digits a number; columns that are empty throughout are left out,
// but for "t".
std::string ToJson(absl::Span<const Point> points);

// Thread-compatible.
class History {
 public:
  // One of the spans: a point stands for `interval_s`, and `points` are kept.
  struct Tier {
    double interval_s;
    size_t points;
  };
  // Fine to coarse.
  static constexpr std::array<Tier, 4> kTiers = {
      {{1, 240}, {10, 240}, {120, 300}, {1800, 336}}};

  // Adds the newest moment. One that is not later than the last is left out.
  // Losses, distances and speeds of the moments that a point stands for are
  // averaged; of the rest the last counts.
  void Add(const Point& point);

  // Everything, oldest first: each time once, from the finest span that has it.
  std::vector<Point> All() const;

 private:
  // What the moments of one point come to.
  struct Bucket {
    int64_t number = -1;  // at_s / interval_s; -1: there is none
    Point last;
    std::array<double, kColumns> sums{};
    std::array<int64_t, kColumns> counts{};

    void Begin(int64_t new_number);
    void Take(const Point& point);
    Point Value() const;
  };

  std::array<std::deque<Point>, kTiers.size()> tiers_;
  std::array<Bucket, kTiers.size()> open_;
  double last_s_ = -1;
};

}  // namespace dfl::page

#endif  // DFL_PAGE_HISTORY_H_
