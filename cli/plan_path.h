// Any value of a plan by its dotted path: "topology.kind", "stop.steps",
// "nodes.box-2.knobs.nu".
#ifndef DFL_CLI_PLAN_PATH_H_
#define DFL_CLI_PLAN_PATH_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/console.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::cli {

// The value there, as the document has it; the whole plan for "".
// Errors: NOT_FOUND names the nearest key and all existing ones.
absl::StatusOr<Json> PlanValue(const core::RunPlan& plan,
                               absl::string_view path);

// Replaces the value there by `value`, read as YAML ("0.5", "ring", "[5, 10]",
// "5..10"), and checks the whole plan.
// Errors: INVALID_ARGUMENT names key, value and what is allowed.
absl::Status SetPlanValue(absl::string_view path, absl::string_view value,
                          core::RunPlan& plan);

}  // namespace dfl::cli

#endif  // DFL_CLI_PLAN_PATH_H_
