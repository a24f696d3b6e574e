// A plan after its checks, and after its derivation for a node. Both are values
// that are shared and never changed: checking and deriving build a graph, which
// takes long in a large network, so a plan passes through here once, away from
// the node's loop, and memory need, warnings, keeper and node take the result.
#ifndef DFL_CORE_PLAN_DERIVED_PLAN_H_
#define DFL_CORE_PLAN_DERIVED_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithm/node_plan.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::core {

// A plan that has passed ValidatePlan. The pointers are never null; the catalogue
// that `algorithm` is an entry of outlives the plan.
struct CheckedPlan {
  std::shared_ptr<const RunPlan> plan;
  std::shared_ptr<const AnyGraph> graph;  // of round 0
  const AlgorithmInfo* algorithm = nullptr;
};

// Checks `plan` and builds its graph once.
// Errors: as ValidatePlan.
absl::StatusOr<CheckedPlan> CheckPlan(
    RunPlan plan, const Catalogue& catalogue = BuiltInCatalogue());

// As PlanWarnings in run_plan.h; a graph that does not vary is not built again.
std::vector<std::string> PlanWarnings(const CheckedPlan& checked);

// A checked plan as one member sees it in round 0.
struct DerivedPlan {
  CheckedPlan checked;
  NodePlan node;

  const RunPlan& plan() const { return *checked.plan; }
};

// Derives the plan for `self`; it builds no graph. Called again with another
// plan whenever the members change.
// Errors: NOT_FOUND when `self` is no member.
absl::StatusOr<DerivedPlan> Derive(CheckedPlan checked, const NodeId& self);

// Checks, then derives.
// Errors: as CheckPlan and Derive.
absl::StatusOr<DerivedPlan> CheckAndDerive(
    RunPlan plan, const NodeId& self,
    const Catalogue& catalogue = BuiltInCatalogue());

// Derives the plan for every member, in member order.
// Errors: as core::Knobs::Resolve.
absl::StatusOr<std::vector<DerivedPlan>> DeriveForAll(
    const CheckedPlan& checked);

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_DERIVED_PLAN_H_
