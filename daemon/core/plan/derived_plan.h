// What a plan means for its members. Like checking (check_plan.h) it is done
// once, away from the node's loop, and again whenever the plan changes; keeper,
// memory need and node take the result.
#ifndef DFL_CORE_PLAN_DERIVED_PLAN_H_
#define DFL_CORE_PLAN_DERIVED_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithm/node_plan.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/check_plan.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::core {

// A checked plan as one member sees it in round 0.
struct DerivedPlan {
  CheckedPlan checked;
  NodePlan node;

  const RunPlan& plan() const { return *checked.plan; }
};

// Derives the plan for `self`; it builds no graph. Where the plan follows the
// network and `self` is no member, it only watches: NodePlan::takes_part.
// Errors: NOT_FOUND when `self` is none of a fixed set.
absl::StatusOr<DerivedPlan> Derive(CheckedPlan checked, const NodeId& self);

// The same for a node that only watches, whether it is a member or not.
// Errors: as core::Knobs::Resolve.
absl::StatusOr<DerivedPlan> DeriveForWatcher(CheckedPlan checked,
                                             const NodeId& self);

// Checks, then derives.
// Errors: as CheckPlan and Derive.
absl::StatusOr<DerivedPlan> CheckAndDerive(
    RunPlan plan, const NodeId& self,
    const Catalogue& catalogue = BuiltInCatalogue());

// Derives the plan for every member, in member order.
// Errors: as core::Knobs::Resolve.
absl::StatusOr<std::vector<DerivedPlan>> DeriveForAll(
    const CheckedPlan& checked);

// A plan that has passed CheckPlan and names `algorithm`, as `self` sees it in
// the round of `graph` (PlanGraph); nothing is built. Errors: as Derive.
absl::StatusOr<NodePlan> DeriveCheckedNodePlan(const RunPlan& plan,
                                               const AlgorithmInfo& algorithm,
                                               const NodeId& self,
                                               AnyGraph graph);

// A plan that need not have been checked, as `self` or every member sees it in
// round `round`. All rounds are alike unless the topology varies.
// Errors: as CheckPlan and Derive.
absl::StatusOr<NodePlan> DeriveNodePlan(
    const RunPlan& plan, const NodeId& self, int64_t round = 0,
    const Catalogue& catalogue = BuiltInCatalogue());
absl::StatusOr<std::vector<NodePlan>> DeriveNodePlans(
    const RunPlan& plan, int64_t round = 0,
    const Catalogue& catalogue = BuiltInCatalogue());

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_DERIVED_PLAN_H_
