// How fast a node trains: smoothed loss, steps a second, the longest gap
// between two steps.
#ifndef DFL_RUNTIME_PROGRESS_H_
#define DFL_RUNTIME_PROGRESS_H_

#include <cstdint>
#include <deque>
#include <utility>

#include "absl/time/time.h"

namespace dfl::runtime {

class Progress {
 public:
  // Training begins, or goes on, now.
  void Resume(absl::Time now);
  // Training pauses or ends now.
  void Pause(absl::Time now);
  void OnGradient(double loss);
  void OnStep(int64_t step, absl::Time now);

  // Mean of about the last 50 gradients' losses.
  double loss() const { return loss_; }
  // Over about the last ten seconds of training; 0 while it is not.
  double StepsPerSecond() const;
  absl::Duration TrainingTime(absl::Time now) const;
  absl::Duration longest_gap() const { return longest_gap_; }

 private:
  bool running_ = false;
  absl::Time since_;
  absl::Duration trained_;
  absl::Time last_step_;
  absl::Duration longest_gap_;
  double loss_ = 0;
  int64_t losses_ = 0;
  std::deque<std::pair<absl::Time, int64_t>> steps_;  // one a quarter second
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_PROGRESS_H_
