#include "daemon/app/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/app/cgroup.h"
#include "daemon/console/units.h"

namespace dfl::app {
namespace {

using console::HumanBytes;

// 0: it cannot be read.
int64_t MachineMemory(const std::string& root) {
  std::ifstream in(absl::StrCat(root, "proc/meminfo"));
  std::string key;
  int64_t kibibytes = 0;
  std::string rest;
  while (in >> key >> kibibytes && std::getline(in, rest)) {
    if (key == "MemTotal:") return kibibytes << 10;
  }
  return 0;
}

// `text` as a limit; 0: it is none ("max", or not there).
int64_t LimitIn(const std::string& text) {
  int64_t bytes = 0;
  return absl::SimpleAtoi(text, &bytes) ? std::max<int64_t>(0, bytes) : 0;
}

}  // namespace

MemoryLimit FindMemoryLimit(uint64_t setting, const std::string& root) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  if (setting > 0) {
    return {static_cast<int64_t>(std::min(setting, kMost)),
            "compute.memory_limit"};
  }
  MemoryLimit limit{MachineMemory(root), "the machine's memory"};
  const auto tighten = [&limit](int64_t found) {
    if (found == 0 || (limit.bytes > 0 && found >= limit.bytes)) return;
    limit = {found, "the cgroup's memory limit"};
  };
  for (const std::string& folder : GroupFolders(root, "")) {
    tighten(LimitIn(FirstWords(folder + "memory.max").first));
  }
  for (const std::string& folder : GroupFolders(root, "memory")) {
    tighten(LimitIn(FirstWords(folder + "memory.limit_in_bytes").first));
  }
  if (limit.bytes == 0) limit.origin.clear();
  return limit;
}

absl::Status CheckMemory(const runtime::MemoryNeed& need,
                         const MemoryLimit& limit) {
  if (limit.bytes == 0 || need.total <= limit.bytes) return absl::OkStatus();
  std::vector<std::string> parts;
  for (const runtime::MemoryPart& part : need.parts) {
    parts.push_back(absl::StrCat(part.what, " ", HumanBytes(part.bytes)));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "memory: the plan may need ", HumanBytes(need.total),
      " on this node; allowed: ", HumanBytes(limit.bytes), " (", limit.origin,
      "). In the worst case: ", absl::StrJoin(parts, ", "),
      ". Take a topology with fewer neighbours, a smaller model, an algorithm "
      "that keeps less for each (dflctl algorithm show) or a codec that sends "
      "less; or set compute.memory_limit"));
}

}  // namespace dfl::app
