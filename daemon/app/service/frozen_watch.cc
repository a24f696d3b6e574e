#include "daemon/app/service/frozen_watch.h"

#include <algorithm>
#include <vector>

#include "daemon/base/check.h"

namespace dfl::app {

void FrozenWatch::Begin(absl::Time now, double steps) {
  pieces_.push_back({now, std::max(1.0, steps)});
}

void FrozenWatch::End(absl::Time now, bool is_gradient) {
  DFL_CHECK(!pieces_.empty());
  if (is_gradient) {
    gradients_.push_back(now - pieces_.front().began);
    if (gradients_.size() > kRemembered) gradients_.pop_front();
  }
  pieces_.pop_front();
  // The next one has waited until now.
  if (!pieces_.empty()) pieces_.front().began = now;
}

std::optional<FrozenWatch::Frozen> FrozenWatch::Look(
    absl::Time now, absl::Duration patience) const {
  if (pieces_.empty()) return std::nullopt;
  const Piece& present = pieces_.front();
  const absl::Duration since = now - present.began;
  if (since <= patience) return std::nullopt;
  const absl::Duration usual = Median() * present.steps;
  if (since <= usual * kTimesMedian) return std::nullopt;
  return Frozen{since, usual};
}

absl::Duration FrozenWatch::Median() const {
  if (gradients_.empty()) return absl::ZeroDuration();
  std::vector<absl::Duration> sorted(gradients_.begin(), gradients_.end());
  const auto middle = sorted.begin() + sorted.size() / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace dfl::app
