#include "daemon/runtime/progress.h"

#include <algorithm>

namespace dfl::runtime {

void Progress::Resume(absl::Time now) {
  if (running_) return;
  running_ = true;
  since_ = now;
  last_step_ = now;
  steps_.clear();
}

void Progress::Pause(absl::Time now) {
  if (!running_) return;
  running_ = false;
  trained_ += now - since_;
  steps_.clear();
}

void Progress::OnGradient(double loss) {
  ++losses_;
  const double weight = std::max(1.0 / 50, 1.0 / static_cast<double>(losses_));
  loss_ += weight * (loss - loss_);
}

void Progress::OnStep(int64_t gradients, absl::Time now) {
  done_ += std::max<int64_t>(0, gradients - begun_at_);
  begun_at_ = gradients;
  if (running_) longest_gap_ = std::max(longest_gap_, now - last_step_);
  last_step_ = now;
  if (!steps_.empty() && now - steps_.back().first < absl::Milliseconds(250)) {
    return;
  }
  steps_.emplace_back(now, done_);
  while (steps_.size() > 2 && now - steps_.front().first > absl::Seconds(10)) {
    steps_.pop_front();
  }
}

double Progress::StepsPerSecond() const {
  if (!running_ || steps_.size() < 2) return 0;
  const double seconds =
      absl::ToDoubleSeconds(steps_.back().first - steps_.front().first);
  return static_cast<double>(steps_.back().second - steps_.front().second) /
         seconds;
}

absl::Duration Progress::TrainingTime(absl::Time now) const {
  return running_ ? trained_ + (now - since_) : trained_;
}

}  // namespace dfl::runtime
