// Reads what ChooseThreads looks at.
#ifndef DFL_APP_COMPUTE_CPU_READINGS_H_
#define DFL_APP_COMPUTE_CPU_READINGS_H_

#include <string>

#include "daemon/app/compute/cpu_quota.h"
#include "daemon/app/compute/thread_policy.h"

namespace dfl::app {

// The counters now: /proc/stat, the cgroup of `quota`, this process. `root` is
// "/" except in tests. Takes some ten microseconds.
CpuReading ReadCpu(const CpuQuota& quota, const std::string& root = "/");

}  // namespace dfl::app

#endif  // DFL_APP_COMPUTE_CPU_READINGS_H_
