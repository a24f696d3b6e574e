#include "daemon/app/compute/training_threads.h"

#include <algorithm>

namespace dfl::app {
namespace {

constexpr absl::Duration kFirstWait = absl::Seconds(1);
constexpr absl::Duration kLastWait = absl::Minutes(1);

}  // namespace

TrainingThreads::TrainingThreads(int set, CpuBounds bounds,
                                 std::function<CpuReading()> read,
                                 std::function<absl::Time()> clock)
    : chosen_(set <= 0),
      bounds_(bounds),
      read_(std::move(read)),
      clock_(std::move(clock)),
      wait_(kFirstWait) {
  if (chosen_) {
    choice_ = {1, "what others use is not known yet"};
    last_ = read_();
  } else {
    choice_ = {set, "compute.threads"};
  }
}

int TrainingThreads::Now() {
  const absl::MutexLock lock(&mutex_);
  if (!chosen_ || clock_() - last_.at < wait_) return choice_.threads;
  CpuReading now = read_();
  choice_ = ChooseThreads(bounds_, last_, now);
  last_ = std::move(now);
  wait_ = std::min(2 * wait_, kLastWait);
  return choice_.threads;
}

ThreadChoice TrainingThreads::choice() const {
  const absl::MutexLock lock(&mutex_);
  return choice_;
}

}  // namespace dfl::app
