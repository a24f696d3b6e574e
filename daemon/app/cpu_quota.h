// How many processors this process may really use.
#ifndef DFL_APP_CPU_QUOTA_H_
#define DFL_APP_CPU_QUOTA_H_

#include <string>

namespace dfl::app {

// Processors by affinity, cut to the cgroup's quota (v2 cpu.max, v1
// cpu.cfs_quota_us), rounded up; at least 1. `root` is "/" except in tests.
int CpuQuota(const std::string& root = "/");

}  // namespace dfl::app

#endif  // DFL_APP_CPU_QUOTA_H_
