// How fast a node trains: smoothed loss, steps (gradients) a second, the
// longest gap between two boundaries.
#ifndef DFL_RUNTIME_PROGRESS_H_
#define DFL_RUNTIME_PROGRESS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "daemon/core/algorithm/pace.h"

namespace dfl::runtime {

class Progress {
 public:
  // Training begins, or goes on, now.
  void Resume(absl::Time now);
  // Training pauses or ends now.
  void Pause(absl::Time now);
  void OnGradient(double loss);
  // The node goes on from a boundary, `gradients` being taken into its model;
  // and it has come to the next one. What it jumped over between the two was
  // not done here.
  void BeginStep(int64_t gradients) { begun_at_ = gradients; }
  void OnStep(int64_t gradients, absl::Time now);

  // Mean of about the last 50 gradients' losses.
  // nullopt: there was none.
  std::optional<double> loss() const {
    return losses_ > 0 ? std::optional(loss_) : std::nullopt;
  }
  // Over about the last ten seconds of training; 0 while it is not.
  double StepsPerSecond() const;
  absl::Duration TrainingTime(absl::Time now) const;
  absl::Duration longest_gap() const { return longest_gap_; }
  core::EpochCount& epochs() { return epochs_; }
  const core::EpochCount& epochs() const { return epochs_; }

 private:
  bool running_ = false;
  absl::Time since_;
  absl::Duration trained_;
  absl::Time last_step_;
  absl::Duration longest_gap_;
  double loss_ = 0;
  int64_t losses_ = 0;
  core::EpochCount epochs_;
  int64_t begun_at_ = 0;
  int64_t done_ = 0;  // gradients
  // What was done_, once a quarter second.
  std::deque<std::pair<absl::Time, int64_t>> steps_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_PROGRESS_H_
