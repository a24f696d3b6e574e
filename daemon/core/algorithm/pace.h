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
  // For checkpoints.
  struct State {
    int64_t per_pass = 0;  // 0: nothing was counted yet
    double before = 0;     // epochs at step `from`
    int64_t from = 0;
    int64_t counted = 0;

    friend bool operator==(const State& a, const State& b) {
      return a.per_pass == b.per_pass && a.before == b.before &&
             a.from == b.from && a.counted == b.counted;
    }
  };
  const State& state() const { return state_; }
  void SetState(const State& state) { state_ = state; }

  // `steps` are done; those since the last call were taken with `per_pass` >= 1
  // steps an epoch.
  void Count(int64_t steps, int64_t per_pass) {
    if (per_pass != state_.per_pass) {
      state_.before = At(state_.counted);
      state_.from = state_.counted;
      state_.per_pass = per_pass;
    }
    state_.counted = steps;
  }
  // The epochs that `steps` come to.
  double At(int64_t steps) const {
    if (state_.per_pass == 0) return 0;
    return state_.before + static_cast<double>(steps - state_.from) /
                               static_cast<double>(state_.per_pass);
  }

 private:
  State state_;
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
