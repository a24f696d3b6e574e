#include "daemon/app/compute/cpu_quota.h"

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

std::vector<int> Affinity() {
  std::vector<int> processors;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) processors.push_back(i);
    }
  }
  if (processors.empty()) processors.push_back(0);
  return processors;
}

}  // namespace

int CpuQuota::count() const {
  const int all = static_cast<int>(processors.size());
  if (limit <= 0) return all;
  return std::clamp(static_cast<int>(std::ceil(limit)), 1, all);
}

CpuQuota FindCpuQuota(const std::string& root) {
  CpuQuota quota;
  quota.processors = Affinity();
  const auto tighten = [&quota](double found, std::string file,
                                const char* key) {
    if (found <= 0 || (quota.limit > 0 && quota.limit <= found)) return;
    quota.limit = found;
    quota.usage_file = std::move(file);
    quota.usage_key = key;
  };
  for (const std::string& folder : GroupFolders(root, "")) {
    const auto [found, period] = FirstWords(folder + "cpu.max");
    tighten(Limit(found, period), folder + "cpu.stat", "usage_usec");
  }
  for (const std::string& folder : GroupFolders(root, "cpu")) {
    tighten(Limit(FirstWords(folder + "cpu.cfs_quota_us").first,
                  FirstWords(folder + "cpu.cfs_period_us").first),
            folder + "cpuacct.usage", "");
  }
  return quota;
}

}  // namespace dfl::app
