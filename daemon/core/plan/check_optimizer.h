// The checks of a plan's section `optimizer`.
#ifndef DFL_CORE_PLAN_CHECK_OPTIMIZER_H_
#define DFL_CORE_PLAN_CHECK_OPTIMIZER_H_

#include "absl/status/status.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::core {

// Whether the optimiser exists, its settings are in range and are looked at,
// and `algorithm` leaves its local steps to it. The plan's knobs have passed
// their checks.
// Errors: INVALID_ARGUMENT names the key, what was found and what is allowed.
absl::Status CheckOptimizer(const RunPlan& plan,
                            const AlgorithmInfo& algorithm);

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_CHECK_OPTIMIZER_H_
