// How far a node jumps on the word of one neighbour.
//
// A node that hears of a later round jumps there (docs/rounds.md). Two
// neighbours that say so are believed. One alone is believed only
//   - when something of that round has come from it, whole;
//   - for at most kMost rounds at once, and kEach more for every round that the
//     node takes itself;
//   - never to the round at which the run ends: the last one is the node's own.
// So one liar cannot take a node through the run without training.
#ifndef DFL_RUNTIME_GUARDS_JUMP_GUARD_H_
#define DFL_RUNTIME_GUARDS_JUMP_GUARD_H_

#include <algorithm>
#include <cstdint>

namespace dfl::runtime {

class JumpGuard {
 public:
  static constexpr int64_t kMost = 1000;
  static constexpr int64_t kEach = 20;

  // The node took a round itself.
  void OnRound() { left_ = std::min(kMost, left_ + kEach); }

  // The round to go on with from `own`: `by_two` and `by_one` are the furthest
  // that two neighbours, and one, have reached, >= `own`; `last` is where the
  // run ends, 0: nowhere.
  int64_t Jump(int64_t own, int64_t by_two, int64_t by_one, int64_t last) {
    if (last > 0) {
      by_two = std::min(by_two, last);
      by_one = std::min(by_one, last - 1);
    }
    if (by_one > own + kMost) by_one = own;  // nobody falls behind that far
    by_one = std::min(by_one, own + left_);
    if (by_one <= std::max(own, by_two)) return std::max(own, by_two);
    left_ -= by_one - std::max(own, by_two);
    return by_one;
  }

 private:
  int64_t left_ = kMost;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GUARDS_JUMP_GUARD_H_
