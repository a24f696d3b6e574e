#include "daemon/app/compute/cpu_readings.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::app {
namespace {

absl::Duration OwnTime() {
  timespec own{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  return absl::DurationFromTimespec(own);
}

// Ticks of "cpu3 user nice system idle iowait irq softirq steal ..." that are
// not idle; guests are in user already.
int64_t BusyTicks(const std::vector<absl::string_view>& words) {
  constexpr size_t kIdle = 4;
  constexpr size_t kIoWait = 5;
  constexpr size_t kSteal = 8;
  int64_t busy = 0;
  for (size_t i = 1; i < words.size() && i <= kSteal; ++i) {
    int64_t ticks = 0;
    if (i == kIdle || i == kIoWait || !absl::SimpleAtoi(words[i], &ticks)) {
      continue;
    }
    busy += ticks;
  }
  return busy;
}

std::optional<absl::Duration> BusyTime(const std::vector<int>& processors,
                                       const std::string& root) {
  std::ifstream in(absl::StrCat(root, "proc/stat"));
  int64_t busy = 0;
  bool any = false;
  std::string line;
  while (std::getline(in, line)) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty()) continue;
    absl::string_view name = words[0];
    int processor = 0;
    if (!absl::ConsumePrefix(&name, "cpu") ||
        !absl::SimpleAtoi(name, &processor) ||
        !std::binary_search(processors.begin(), processors.end(), processor)) {
      continue;
    }
    busy += BusyTicks(words);
    any = true;
  }
  if (!any) return std::nullopt;
  return absl::Seconds(1) * busy / sysconf(_SC_CLK_TCK);
}

std::optional<absl::Duration> GroupTime(const CpuQuota& quota) {
  if (quota.usage_file.empty()) return std::nullopt;
  std::ifstream in(quota.usage_file);
  std::string word;
  int64_t count = 0;
  if (quota.usage_key.empty()) {  // v1: one number, in nanoseconds
    if (!(in >> count)) return std::nullopt;
    return absl::Nanoseconds(count);
  }
  while (in >> word >> count) {
    if (word == quota.usage_key) return absl::Microseconds(count);
  }
  return std::nullopt;
}

}  // namespace

CpuReading ReadCpu(const CpuQuota& quota, const std::string& root) {
  return {SteadyNow(), OwnTime(), BusyTime(quota.processors, root),
          GroupTime(quota)};
}

}  // namespace dfl::app
