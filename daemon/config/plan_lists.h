// The values of a plan's document that are lists or have names of their own as
// keys: members, edges, mixing weights, knobs, and what single nodes override.
// Room-internal.
#ifndef DFL_CONFIG_PLAN_LISTS_H_
#define DFL_CONFIG_PLAN_LISTS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "daemon/config/plan_document.h"
#include "daemon/config/yaml_tree.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::config {

// Each of these reads `key` of `section`, whose path is `path`, and notes
// mistakes in `in`. The writers write nothing for an empty value.

// Who takes part: "all", a list of names and labels, or {fixed: [...]} with
// names or {name: ..., rows: ...}. Older documents have the fixed set under the
// key kFormerMembers, which is not written.
inline constexpr char kFormerMembers[] = "members";
void ReadParticipants(const YamlNode& section, const std::string& path,
                      absl::string_view key, PlanReading& in);
void WriteParticipants(const core::RunPlan& plan, int depth,
                       absl::string_view key, PlanWriter& out);

// Pairs of names.
void ReadEdges(const YamlNode& section, const std::string& path,
               absl::string_view key, PlanReading& in);
void WriteEdges(const core::RunPlan& plan, int depth, absl::string_view key,
                PlanWriter& out);

// Lists of pairs of names.
void ReadEdgeSets(const YamlNode& section, const std::string& path,
                  absl::string_view key, PlanReading& in);
void WriteEdgeSets(const core::RunPlan& plan, int depth, absl::string_view key,
                   PlanWriter& out);

void ReadMatrix(const YamlNode& section, const std::string& path,
                absl::string_view key, PlanReading& in);
void WriteMatrix(const core::RunPlan& plan, int depth, absl::string_view key,
                 PlanWriter& out);

// Knobs of the plan's algorithm, which has been read.
void ReadKnobs(const YamlNode& section, const std::string& path,
               absl::string_view key, core::KnobValues& out, PlanReading& in);
void WriteKnobs(const core::KnobValues& knobs, int depth, absl::string_view key,
                PlanWriter& out);

void ReadNodes(const YamlNode& section, const std::string& path,
               absl::string_view key, PlanReading& in);
void WriteNodes(const core::RunPlan& plan, int depth, absl::string_view key,
                PlanWriter& out);

}  // namespace dfl::config

#endif  // DFL_CONFIG_PLAN_LISTS_H_
