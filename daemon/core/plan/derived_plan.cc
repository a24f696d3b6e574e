#include "daemon/core/plan/derived_plan.h"

#include <utility>

#include "daemon/base/status_macros.h"

namespace dfl::core {

absl::StatusOr<CheckedPlan> CheckPlan(RunPlan plan,
                                      const Catalogue& catalogue) {
  CheckedPlan checked;
  DFL_ASSIGN_OR_RETURN(AnyGraph graph, ValidatedGraph(plan, catalogue));
  DFL_ASSIGN_OR_RETURN(checked.algorithm, catalogue.Find(plan.algorithm.name));
  checked.graph = std::make_shared<const AnyGraph>(std::move(graph));
  checked.plan = std::make_shared<const RunPlan>(std::move(plan));
  return checked;
}

std::vector<std::string> PlanWarnings(const CheckedPlan& checked) {
  return PlanWarnings(*checked.plan, *checked.algorithm, *checked.graph);
}

absl::StatusOr<DerivedPlan> Derive(CheckedPlan checked, const NodeId& self) {
  DerivedPlan derived;
  DFL_ASSIGN_OR_RETURN(derived.node,
                       DeriveCheckedNodePlan(*checked.plan, *checked.algorithm,
                                             self, *checked.graph));
  derived.checked = std::move(checked);
  return derived;
}

absl::StatusOr<DerivedPlan> CheckAndDerive(RunPlan plan, const NodeId& self,
                                           const Catalogue& catalogue) {
  DFL_ASSIGN_OR_RETURN(CheckedPlan checked,
                       CheckPlan(std::move(plan), catalogue));
  return Derive(std::move(checked), self);
}

absl::StatusOr<std::vector<DerivedPlan>> DeriveForAll(
    const CheckedPlan& checked) {
  DFL_ASSIGN_OR_RETURN(std::vector<NodePlan> nodes,
                       DeriveCheckedNodePlans(*checked.plan, *checked.algorithm,
                                              *checked.graph));
  std::vector<DerivedPlan> derived;
  derived.reserve(nodes.size());
  for (NodePlan& node : nodes) derived.push_back({checked, std::move(node)});
  return derived;
}

}  // namespace dfl::core
