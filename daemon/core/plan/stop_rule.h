// The limits of a plan's section `stop` that a node counts by itself.
#ifndef DFL_CORE_PLAN_STOP_RULE_H_
#define DFL_CORE_PLAN_STOP_RULE_H_

#include <string>

#include "daemon/core/algorithm/pace.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::core {

// Which of stop.steps, stop.rounds and stop.epochs a model meets that has come
// as far as `pace` and `epochs`, for a person: "590 steps are done"; "": none.
// The first that is met ends a run, at the next boundary: steps and epochs may
// be exceeded by what an iteration takes.
std::string MetLimit(const StopRule& stop, const Pace& pace, double epochs);

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_STOP_RULE_H_
