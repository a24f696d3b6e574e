// How far a model has come, in the two units that people use:
//
//   step   one mini-batch gradient. The two gradients that an algorithm takes
//          of one mini-batch are one step (dfedsam).
//   round  one exchange, or the opportunity for one.
//
// A third number is the algorithm's own: the iteration k, by which nodes tell
// how far they are from each other (Algorithm::step(), StateFrame::step, the
// rounds of pushes and parcels). In most algorithms an iteration is a round;
// AlgorithmInfo::pace says what the two units are in each. An epoch is as many
// steps as it takes to go through the node's own rows once.
#ifndef DFL_CORE_ALGORITHM_PACE_H_
#define DFL_CORE_ALGORITHM_PACE_H_

#include <algorithm>
#include <cstdint>

namespace dfl::core {

struct Pace {
  int64_t steps = 0;
  int64_t rounds = 0;

  friend bool operator==(const Pace& a, const Pace& b) {
    return a.steps == b.steps && a.rounds == b.rounds;
  }
};

// Counts epochs while the steps of one may change (another batch size).
class EpochCount {
 public:
  // `steps` are done; those since the last call were taken with `per_pass` >= 1
  // steps an epoch.
  void Count(int64_t steps, int64_t per_pass) {
    if (per_pass != per_pass_) {
      before_ = At(counted_);
      from_ = counted_;
      per_pass_ = per_pass;
    }
    counted_ = steps;
  }
  // The epochs that `steps` come to.
  double At(int64_t steps) const {
    if (per_pass_ == 0) return 0;
    return before_ +
           static_cast<double>(steps - from_) / static_cast<double>(per_pass_);
  }

 private:
  int64_t per_pass_ = 0;  // 0: nothing was counted yet
  double before_ = 0;     // epochs at step from_
  int64_t from_ = 0;
  int64_t counted_ = 0;
};

// `each` times `count`, rounded down; at most 2^53, so that what a peer says
// never overflows.
inline int64_t TimesAtMost(double each, int64_t count) {
  constexpr double kMost = 9007199254740992.0;
  return static_cast<int64_t>(
      std::min(each * static_cast<double>(count), kMost));
}

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHM_PACE_H_
