// How long answers of one peer take: a smoothed time and how much times differ
// from it, as TCP estimates them (Jacobson and Karels 1988, RFC 6298).
//
//   deviation += (|sample - mean| - deviation) / 4
//   mean      += (sample - mean) / 8
//   deadline   = mean + 4 deviation, between a floor and a ceiling
//
// The first sample s makes the mean s and the deviation s / 2. Before it there
// is no estimate, and the deadline is the usual one; twice as long after each
// that was missed, so that a link that is slower comes to a first sample.
#ifndef DFL_RUNTIME_LINKS_LINK_TIMES_H_
#define DFL_RUNTIME_LINKS_LINK_TIMES_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace dfl::runtime {

struct DeadlineBounds {
  absl::Duration usual;  // while nothing is known
  absl::Duration floor;
  absl::Duration ceiling;
};

class LinkTimes {
 public:
  // An answer took `time`; a negative one counts as none at all.
  void Note(absl::Duration time) {
    if (time < absl::ZeroDuration()) return;
    if (samples_++ == 0) {
      mean_ = time;
      deviation_ = time / 2;
      return;
    }
    deviation_ += (absl::AbsDuration(time - mean_) - deviation_) / 4;
    mean_ += (time - mean_) / 8;
  }
  // No answer came within `deadline`. The next deadlines are longer, as after a
  // lost packet, until an answer shows how long they take.
  void NoteMissed(absl::Duration deadline) {
    if (samples_ == 0) {
      least_ = std::max(least_, 2 * deadline);
      return;
    }
    deviation_ = std::max(deviation_, deadline / 2);
  }

  // Nearly all answers come within it; 0 while nothing is known.
  absl::Duration Expected() const { return mean_ + 4 * deviation_; }

  // How long to wait for the next answer.
  absl::Duration Deadline(const DeadlineBounds& bounds) const {
    return std::clamp(
        samples_ == 0 ? std::max(bounds.usual, least_) : Expected(),
        bounds.floor, std::max(bounds.floor, bounds.ceiling));
  }

  int64_t samples() const { return samples_; }
  absl::Duration mean() const { return mean_; }
  absl::Duration deviation() const { return deviation_; }

 private:
  int64_t samples_ = 0;
  absl::Duration mean_;
  absl::Duration deviation_;
  absl::Duration least_;  // before the first sample: what missed ones ask for
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_LINKS_LINK_TIMES_H_
