// What a person who is about to apply a plan should be told, e.g. that PaME
// with nu = p = 1 on a bipartite graph never mixes.
#ifndef DFL_CORE_PLAN_PLAN_WARNINGS_H_
#define DFL_CORE_PLAN_PLAN_WARNINGS_H_

#include <string>
#include <vector>

#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/check_plan.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::core {

// Each warning opens with the key that it is about. A graph that does not vary
// is not built again.
std::vector<std::string> PlanWarnings(const CheckedPlan& checked);

// Of these, what is about the graph: that it falls apart, that it has an edge
// between two members that cannot be dialled. `plan` has members and passes its
// checks; `algorithm` is its entry.
std::vector<std::string> ConnectionWarnings(const RunPlan& plan,
                                            const AlgorithmInfo& algorithm);

// The same of a plan that may not pass its checks; then there are none.
std::vector<std::string> PlanWarnings(
    const RunPlan& plan, const Catalogue& catalogue = BuiltInCatalogue());

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_PLAN_WARNINGS_H_
