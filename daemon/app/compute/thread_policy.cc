#include "daemon/app/compute/thread_policy.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace dfl::app {
namespace {

constexpr double kCountsAsIdle = 0.25;

// Processors that others used on average; counters of several files are not
// read at one moment, so it may seem to be less than none.
double OthersOf(absl::Duration before, absl::Duration now, absl::Duration own,
                absl::Duration elapsed) {
  return std::max(0.0, absl::FDivDuration(now - before - own, elapsed));
}

}  // namespace

ThreadChoice ChooseThreads(const CpuBounds& bounds, const CpuReading& before,
                           const CpuReading& now) {
  const absl::Duration elapsed = now.at - before.at;
  const absl::Duration own = now.own - before.own;
  double allowed = bounds.processors;
  if (bounds.limit > 0) allowed = std::min(allowed, bounds.limit);
  const int most = std::max(1, static_cast<int>(std::ceil(allowed)));
  if (!before.all || !now.all || elapsed <= absl::ZeroDuration()) {
    return {most, "what others use cannot be read"};
  }
  const double others = OthersOf(*before.all, *now.all, own, elapsed);
  double idle = bounds.processors - others;
  double group = 0;
  if (bounds.limit > 0) {
    if (before.group && now.group) {
      group = OthersOf(*before.group, *now.group, own, elapsed);
    }
    idle = std::min(idle, bounds.limit - group);
  }
  const int threads =
      std::clamp(static_cast<int>(std::floor(idle + kCountsAsIdle)), 1, most);
  if (bounds.limit > 0 && bounds.limit - group <= bounds.processors - others) {
    return {threads,
            group <= kCountsAsIdle
                ? absl::StrFormat("the quota is %.3g processors", bounds.limit)
                : absl::StrFormat("others in the cgroup use %.1f of its %.3g "
                                  "processors",
                                  group, bounds.limit)};
  }
  if (threads >= most) {
    return {most, absl::StrFormat("%d of %d processors are idle", most,
                                  bounds.processors)};
  }
  return {threads, absl::StrFormat("others use %.1f of %d processors", others,
                                   bounds.processors)};
}

}  // namespace dfl::app
