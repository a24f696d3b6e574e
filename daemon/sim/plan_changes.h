// The plans of a run whose plan changes, as by `dflctl plan apply` and `dflctl
// set`.
//
// Changes are merged into the scenario's document like variants, in the order
// of their times. Each makes a plan with the next version. Run, seed and model
// do not change. A node that leaves is not a member of the plan until it joins
// again.
#ifndef DFL_SIM_PLAN_CHANGES_H_
#define DFL_SIM_PLAN_CHANGES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/config/yaml_tree.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/sim/network_event.h"

namespace dfl::sim {

// The keys of a plan that may change while a run goes on.
std::vector<std::string> ChangeableKeys();

// Gives each event that changes the plan its new plan. `root` is the scenario's
// document and `first` the complete plan with which it begins, read with
// `around` and `catalogue`. A wrong plan is a mistake at the line of its event,
// and later events get none.
void DerivePlans(const config::YamlNode& root, const core::RunPlan& first,
                 const config::PlanSurroundings& around,
                 const core::Catalogue& catalogue, config::YamlReader& yaml,
                 std::vector<WrittenEvent>& events);

}  // namespace dfl::sim

#endif  // DFL_SIM_PLAN_CHANGES_H_
