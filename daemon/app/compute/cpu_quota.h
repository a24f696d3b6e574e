// How many processors this process may really use.
#ifndef DFL_APP_COMPUTE_CPU_QUOTA_H_
#define DFL_APP_COMPUTE_CPU_QUOTA_H_

#include <string>
#include <vector>

namespace dfl::app {

struct CpuQuota {
  std::vector<int> processors;  // by affinity, rising; at least one
  double limit = 0;             // of the cgroup, in processors; 0: none
  // File that counts the processor time of all in the cgroup that limits most,
  // "": none, and the word that its line begins with, "": there is but one.
  std::string usage_file;
  std::string usage_key;

  // Whole processors that may be used at once, the limit rounded up; >= 1.
  int count() const;
};

// Processors by affinity, and the cgroup's quota (v2 cpu.max, v1
// cpu.cfs_quota_us). `root` is "/" except in tests.
CpuQuota FindCpuQuota(const std::string& root = "/");

}  // namespace dfl::app

#endif  // DFL_APP_COMPUTE_CPU_QUOTA_H_
