// The checks of a plan, as far as it can be checked without a model: the
// document by itself, then what its algorithm asks of it. Checking builds a
// graph, which takes long in a large network. So a plan is checked once, away
// from the node's loop, and everyone else takes the result.
#ifndef DFL_CORE_PLAN_CHECK_PLAN_H_
#define DFL_CORE_PLAN_CHECK_PLAN_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::core {

// A plan that has passed its checks: a value that is shared and never changed.
// The pointers are never null; the catalogue that `algorithm` is an entry of
// outlives the plan.
//
// A plan that follows the network may have no members yet (participants.h): it
// is checked as far as that goes, its graph is empty, and nobody takes part.
struct CheckedPlan {
  std::shared_ptr<const RunPlan> plan;
  std::shared_ptr<const AnyGraph> graph;  // of round 0
  const AlgorithmInfo* algorithm = nullptr;
};

// Checks the whole plan and keeps the graph.
// Errors: INVALID_ARGUMENT "topology.kind: \"rign\" is unknown; did you mean
// \"ring\"? allowed: ..." and the like: key, value found, what is allowed;
// FAILED_PRECONDITION as BuildTopology.
absl::StatusOr<CheckedPlan> CheckPlan(
    RunPlan plan, const Catalogue& catalogue = BuiltInCatalogue());

// The same for those who want nothing but to know.
// Errors: as CheckPlan.
absl::Status ValidatePlan(const RunPlan& plan,
                          const Catalogue& catalogue = BuiltInCatalogue());

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_CHECK_PLAN_H_
