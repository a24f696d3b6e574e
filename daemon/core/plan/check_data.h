// The checks of a plan's section `data:`, by itself and against the model. What
// nodes have is compared with it where nodes are asked: core/contract.
#ifndef DFL_CORE_PLAN_CHECK_DATA_H_
#define DFL_CORE_PLAN_CHECK_DATA_H_

#include "absl/status/status.h"
#include "daemon/core/contract/data_section.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::core {

// Errors: INVALID_ARGUMENT "data.classes: ...", as CheckPlan.
absl::Status CheckData(const DataSection& data, const ModelSpec& model);

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_CHECK_DATA_H_
