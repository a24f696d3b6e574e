// Whether the training still moves: how long its thread has been at one piece
// of work, against what such work takes usually.
#ifndef DFL_APP_SERVICE_FROZEN_WATCH_H_
#define DFL_APP_SERVICE_FROZEN_WATCH_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace dfl::app {

// Thread-compatible. Times are those of one steady clock.
//
// Work is a gradient, or what takes as long as `steps` of them: an evaluation
// of many rows. It is done one piece after the other, in the order of Begin.
class FrozenWatch {
 public:
  // The newest gradients, of which the median is taken.
  static constexpr size_t kRemembered = 63;
  // A piece of work is frozen after so many times what it takes usually.
  static constexpr double kTimesMedian = 20;

  // What has taken too long.
  struct Frozen {
    absl::Duration since;  // the present piece of work began
    absl::Duration usual;  // it takes; 0: unknown
  };

  // A piece of work is asked for. `steps` is at least 1.
  void Begin(absl::Time now, double steps = 1);
  // The oldest piece has ended. `is_gradient`: its time is one of a gradient,
  // which counts for the median.
  void End(absl::Time now, bool is_gradient);

  // The present piece, if it has taken longer than `patience`, and longer than
  // 20 times the median gradient for each of its steps. Nullopt: it has not, or
  // there is none.
  std::optional<Frozen> Look(absl::Time now, absl::Duration patience) const;

 private:
  struct Piece {
    absl::Time began;  // its turn came
    double steps = 1;
  };

  absl::Duration Median() const;

  std::deque<Piece> pieces_;  // the first is under way
  std::deque<absl::Duration> gradients_;
};

}  // namespace dfl::app

#endif  // DFL_APP_SERVICE_FROZEN_WATCH_H_
