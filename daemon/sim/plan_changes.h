// The plans of a run whose plan changes while it goes on: what `dflctl plan
// apply` and `dflctl set` do to daemons.
//
// Changes are merged into the scenario's document as variants are, one after the
// other in the order of their times, and each gives a plan with the next
// version. Run, seed and model stay. A node that leaves is no member of the plan
// from then on, until it joins again.
#ifndef DFL_SIM_PLAN_CHANGES_H_
#define DFL_SIM_PLAN_CHANGES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/config/yaml_tree.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/sim/network_event.h"

namespace dfl::sim {

// The keys of a plan that may change while a run goes on.
std::vector<std::string> ChangeableKeys();

// Gives each event that changes the plan the one from then on. `root` is the
// scenario's document, `first` the plan that it begins with, complete; `around`
// as the plan was read. A plan that is wrong is a mistake in the line of its
// event; nothing comes after it.
void DerivePlans(const config::YamlNode& root, const core::RunPlan& first,
                 const config::PlanSurroundings& around,
                 config::YamlReader& yaml, std::vector<WrittenEvent>& events);

}  // namespace dfl::sim

#endif  // DFL_SIM_PLAN_CHANGES_H_
