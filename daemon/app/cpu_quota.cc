#include "daemon/app/cpu_quota.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace dfl::app {
namespace {

// The first two words of a file; empty when it cannot be read.
std::pair<std::string, std::string> FirstWords(const std::string& path) {
  std::ifstream in(path);
  std::string first;
  std::string second;
  in >> first >> second;
  return {first, second};
}

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

// The process's group below a cgroup mount; `controller` is "" for v2.
std::string GroupOf(const std::string& root, const std::string& controller) {
  std::ifstream in(absl::StrCat(root, "proc/self/cgroup"));
  std::string line;
  while (std::getline(in, line)) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (std::find(controllers.begin(), controllers.end(), controller) !=
        controllers.end()) {
      return parts[2];
    }
  }
  return "/";
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
  for (const std::string& group : {std::string("/"), GroupOf(root, "")}) {
    const auto [quota, period] =
        FirstWords(absl::StrCat(root, "sys/fs/cgroup", group, "/cpu.max"));
    tighten(Limit(quota, period));
  }
  for (const std::string& group : {std::string("/"), GroupOf(root, "cpu")}) {
    const std::string folder =
        absl::StrCat(root, "sys/fs/cgroup/cpu", group, "/");
    tighten(Limit(FirstWords(folder + "cpu.cfs_quota_us").first,
                  FirstWords(folder + "cpu.cfs_period_us").first));
  }
  if (limit <= 0) return processors;
  return std::clamp(static_cast<int>(std::ceil(limit)), 1, processors);
}

}  // namespace dfl::app
