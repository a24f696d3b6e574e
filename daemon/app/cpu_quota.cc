#include "daemon/app/cpu_quota.h"

#include <sched.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "daemon/app/cgroup.h"

namespace dfl::app {
namespace {

// Processors that quota / period microseconds allow; 0: no limit.
double Limit(const std::string& quota, const std::string& period) {
  double q = 0;
  double p = 0;
  if (!absl::SimpleAtod(quota, &q) || !absl::SimpleAtod(period, &p) || q <= 0 ||
      p <= 0) {
    return 0;
  }
  return q / p;
}

}  // namespace

int CpuQuota(const std::string& root) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int processors = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    processors = std::max(1, CPU_COUNT(&set));
  }
  double limit = 0;
  const auto tighten = [&limit](double found) {
    if (found > 0) limit = limit > 0 ? std::min(limit, found) : found;
  };
  for (const std::string& folder : GroupFolders(root, "")) {
    const auto [quota, period] = FirstWords(folder + "cpu.max");
    tighten(Limit(quota, period));
  }
  for (const std::string& folder : GroupFolders(root, "cpu")) {
    tighten(Limit(FirstWords(folder + "cpu.cfs_quota_us").first,
                  FirstWords(folder + "cpu.cfs_period_us").first));
  }
  if (limit <= 0) return processors;
  return std::clamp(static_cast<int>(std::ceil(limit)), 1, processors);
}

}  // namespace dfl::app
