// What a plan means for this node's model: for `dflctl plan apply --dry-run`.
#ifndef DFL_APP_PLAN_FACTS_H_
#define DFL_APP_PLAN_FACTS_H_

#include "absl/status/statusor.h"
#include "daemon/app/memory_limit.h"
#include "daemon/base/ids.h"
#include "daemon/control/backend.h"
#include "daemon/core/run_plan.h"
#include "daemon/ports/learner.h"
#include "daemon/runtime/memory_need.h"

namespace dfl::app {

// What dfld takes before it has a model, LibTorch and gRPC included: measured as
// its resident size with a model of 200 parameters (182 MB, of which 62 MB are
// not files), Debian 12, amd64.
inline constexpr int64_t kProgramBytes = 180'000'000;

// `need`: the plan's, on node `self`.
// Errors: as core::DeriveNodePlan.
absl::StatusOr<control::ModelFacts> FactsOf(const core::RunPlan& plan,
                                            const NodeId& self,
                                            const ports::ModelInfo& model,
                                            const ports::DataInfo& data,
                                            const runtime::MemoryNeed& need,
                                            const MemoryLimit& limit);

}  // namespace dfl::app

#endif  // DFL_APP_PLAN_FACTS_H_
