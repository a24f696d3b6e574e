// Prints what became of a plan on each target, for all commands that change it.
#ifndef DFL_CLI_APPLY_REPORT_H_
#define DFL_CLI_APPLY_REPORT_H_

#include <optional>
#include <vector>

#include "cli/context.h"
#include "cli/plan_wait.h"

namespace dfl::cli {

// `adoption`: of the members, where they were waited for.
void ReportApplied(Context& context,
                   const std::vector<Answer<client::ApplyPlanResult>>& answers,
                   bool dry_run, const std::optional<Adoption>& adoption);

}  // namespace dfl::cli

#endif  // DFL_CLI_APPLY_REPORT_H_
