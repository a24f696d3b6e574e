// Generated problems. Each node has rows of its own, and its loss is over all
// of them. Accuracy, if there are classes, is on one test set for all nodes.
#ifndef DFL_SIM_TASKS_ANALYTIC_TASK_H_
#define DFL_SIM_TASKS_ANALYTIC_TASK_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/sim/problem_spec.h"
#include "daemon/sim/tasks/task.h"

namespace dfl::sim {

// `problem` is not kData; the nodes are the plan's members. `flipped` of them,
// by place, learn labels classes - 1 - y in place of y (kSoftmax).
std::unique_ptr<Task> MakeAnalyticTask(const ProblemSpec& problem,
                                       const core::RunPlan& plan,
                                       absl::Span<const int64_t> flipped = {});

}  // namespace dfl::sim

#endif  // DFL_SIM_TASKS_ANALYTIC_TASK_H_
