// How far a node jumps on the word of one neighbour.
//
// A node that hears of a later round jumps there (docs/rounds.md). Two
// neighbours that say so are believed; where the plan's aggregation reckons
// with f hostile ones, f + 1 and at least two. One alone is believed only
//   - when something of that round has come from it, whole;
//   - for at most kMost rounds, and kEach more for every round that the node
//     takes itself;
//   - and, when nothing has come from anybody for longer than kApart and than
//     four rounds, for kEach more for every round that would have fitted in:
//     the node, or the network to it, was frozen, and the others went on;
//   - never to the round at which the run ends: the last one is the node's own.
// So one liar cannot take a node through the run without training, and a node
// with one neighbour finds back to it.
#ifndef DFL_RUNTIME_GUARDS_JUMP_GUARD_H_
#define DFL_RUNTIME_GUARDS_JUMP_GUARD_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace dfl::runtime {

class JumpGuard {
 public:
  static constexpr int64_t kMost = 1000;
  static constexpr int64_t kEach = 20;
  static constexpr absl::Duration kApart = absl::Seconds(1);
  // The time of a round is the shortest of so many.
  static constexpr size_t kTimed = 8;
  // What was allowed for a time apart is not kept for longer.
  static constexpr absl::Duration kKept = absl::Seconds(30);

  // The node took a round itself.
  void OnRound(absl::Time now) {
    left_ = std::min(kMost, left_ + kEach);
    times_[rounds_++ % kTimed] = now - std::exchange(round_, now);
  }

  // Something came whole from a neighbour, not long before `now`.
  void OnHeard(absl::Time now) {
    const absl::Duration apart = now - std::exchange(heard_, now);
    const absl::Duration a_round = std::max(
        absl::Microseconds(1), *std::min_element(times_.begin(), times_.end()));
    if (rounds_ < kTimed || apart >= absl::InfiniteDuration() ||
        apart <= std::max(kApart, 4 * a_round)) {
      return;
    }
    apart_ = static_cast<int64_t>(kEach * absl::FDivDuration(apart, a_round));
    back_ = now;
  }

  // The round to go on with from `own`: `by_several` and `by_one` are the
  // furthest that enough neighbours, and one, have reached, >= `own`; `last` is
  // where the run ends, 0: nowhere.
  int64_t Jump(int64_t own, int64_t by_several, int64_t by_one, int64_t last,
               absl::Time now) {
    if (last > 0) {
      by_several = std::min(by_several, last);
      by_one = std::min(by_one, last - 1);
    }
    if (now > back_ + kKept) apart_ = 0;
    by_one = std::min(by_one, own + left_ + apart_);
    if (by_one <= std::max(own, by_several)) return std::max(own, by_several);
    const int64_t taken = by_one - std::max(own, by_several);
    const int64_t of_apart = std::min(taken, apart_);
    apart_ -= of_apart;
    left_ -= taken - of_apart;
    return by_one;
  }

 private:
  int64_t left_ = kMost;
  size_t rounds_ = 0;
  absl::Time round_ = absl::InfinitePast();     // its end
  std::array<absl::Duration, kTimed> times_{};  // that the last rounds took
  absl::Time heard_ = absl::InfiniteFuture();   // never yet
  absl::Time back_ = absl::InfinitePast();  // heard again after a time apart
  int64_t apart_ = 0;                       // allowed for it
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GUARDS_JUMP_GUARD_H_
