// What a plan means for this node's model: for `dflctl plan apply --dry-run`.
#ifndef DFL_APP_PLAN_FACTS_H_
#define DFL_APP_PLAN_FACTS_H_

#include <cstdint>
#include <string>

#include "daemon/app/memory_limit.h"
#include "daemon/control/backend.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/ports/learner.h"
#include "daemon/runtime/memory_need.h"

namespace dfl::app {

// What dfld takes by itself, LibTorch and gRPC included, with `model`. Measured
// as resident size in training, Debian 12, amd64: 182 MB with 200 parameters
// (62 MB of it no files); with an mlp of n = 19.2 million 2.5 n floats more, at
// the peak, than the node's own: gradients of a mini-batch before they are
// added, and blocks that are kept from building the model. Counted as 3 n.
// Where the plain learner is the `engine` (LearnerFactory::EngineOf) that is 60
// MB: LibTorch is not loaded, and gradients have no other place.
int64_t ProgramBytes(const ports::ModelInfo& model, const std::string& engine);

// `need`: of the plan.
control::ModelFacts FactsOf(const core::DerivedPlan& plan,
                            const ports::ModelInfo& model,
                            const ports::DataInfo& data,
                            const runtime::MemoryNeed& need,
                            const MemoryLimit& limit);

}  // namespace dfl::app

#endif  // DFL_APP_PLAN_FACTS_H_
