// When a checkpoint is due: at multiples of a stride, which is a power of two
// and so long that about `interval` lies between two of them. Nodes that go at
// one pace have the same stride, and of two strides the longer one is a
// multiple of the shorter: what they write has steps in common.
//
// A node that jumps over a multiple writes one where it lands.
#ifndef DFL_RUNTIME_CHECKPOINTS_CHECKPOINT_CLOCK_H_
#define DFL_RUNTIME_CHECKPOINTS_CHECKPOINT_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace dfl::runtime {

class CheckpointClock {
 public:
  // The last one is of `step`, and was written at `now`.
  void Begin(int64_t step, absl::Time now) {
    written_ = visited_ = step;
    at_ = now;
  }

  // Call at every boundary. Whether one is due at that of `step`, which counts
  // as written then; at the first one of a run none is. `interval` <= 0: never.
  bool Due(int64_t step, absl::Time now, absl::Duration interval) {
    if (interval <= absl::ZeroDuration()) return false;
    if (at_ == absl::InfinitePast() || step < visited_) Begin(step, now);
    const int64_t before = std::exchange(visited_, step);
    if (step == before) return false;
    const double passed = std::max(absl::FDivDuration(now - at_, interval),
                                   1.0 / static_cast<double>(kLongest));
    const double in_interval = static_cast<double>(step - written_) / passed;
    int64_t stride = 1;
    while (static_cast<double>(stride) < in_interval && stride < kLongest) {
      stride *= 2;
    }
    if (step / stride == before / stride) return false;
    Begin(step, now);
    return true;
  }

 private:
  static constexpr int64_t kLongest = int64_t{1} << 40;

  int64_t written_ = 0;
  int64_t visited_ = 0;  // the last boundary
  absl::Time at_ = absl::InfinitePast();
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_CHECKPOINTS_CHECKPOINT_CLOCK_H_
