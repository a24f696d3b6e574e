// The one declaration of every key of a plan's document. Reading, writing and
// the lists of allowed keys in errors all go through this table, so a key is
// named once. Room-internal.
#ifndef DFL_CONFIG_PLAN_TABLE_H_
#define DFL_CONFIG_PLAN_TABLE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "daemon/config/plan_document.h"
#include "daemon/config/yaml_tree.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::config {

struct PlanKey {
  std::string key;
  // Of a section: its keys. Then `read` and `write` are empty.
  std::vector<PlanKey> keys;
  // Reads the key's value from `section`, whose path is `path`. Where the key
  // is absent, the plan keeps its default.
  std::function<void(const YamlNode& section, const std::string& path,
                     PlanReading& in)>
      read;
  // Writes the key with its value, or nothing where it may be left out.
  std::function<void(const core::RunPlan& plan, int depth, PlanWriter& out)>
      write;
};

// All keys, in the order in which they are written and read.
absl::Span<const PlanKey> PlanTable();

}  // namespace dfl::config

#endif  // DFL_CONFIG_PLAN_TABLE_H_
