// How much memory a run plan may need on this node.
#ifndef DFL_APP_MEMORY_LIMIT_H_
#define DFL_APP_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "daemon/runtime/memory_need.h"

namespace dfl::app {

struct MemoryLimit {
  int64_t bytes = 0;   // 0: none is known
  std::string origin;  // "compute.memory_limit", "the machine's memory", ...
};

// `setting`, unless it is 0; else the least of the machine's memory (MemTotal)
// and what bounds the process's cgroup and those above it (v2 memory.max, v1
// memory.limit_in_bytes), as far as they can be read. `root` is "/" except in
// tests.
MemoryLimit FindMemoryLimit(uint64_t setting, const std::string& root = "/");

// Errors: INVALID_ARGUMENT when `need` is beyond `limit`: both figures, the
// need's parts and what to change.
absl::Status CheckMemory(const runtime::MemoryNeed& need,
                         const MemoryLimit& limit);

}  // namespace dfl::app

#endif  // DFL_APP_MEMORY_LIMIT_H_
