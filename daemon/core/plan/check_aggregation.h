// Whether a plan's aggregation rule can be had with its algorithm, codec and
// graph.
#ifndef DFL_CORE_PLAN_CHECK_AGGREGATION_H_
#define DFL_CORE_PLAN_CHECK_AGGREGATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::core {

// `graph` is that of round 0, or empty where there are no members. Where the
// members are named, every one of them must have enough values in a round.
// Errors: INVALID_ARGUMENT with the key, what was found and what is allowed.
absl::Status CheckAggregation(const RunPlan& plan,
                              const AlgorithmInfo& algorithm,
                              const AnyGraph& graph);

// What a person should know of the rule of a plan that has passed its checks.
// Where members come and go, those that have too few values are told here.
std::vector<std::string> AggregationWarnings(const RunPlan& plan,
                                             const AlgorithmInfo& algorithm,
                                             const AnyGraph& graph);

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_CHECK_AGGREGATION_H_
