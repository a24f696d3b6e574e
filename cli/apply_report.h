// Prints what became of a plan on each target, for all commands that change it.
#ifndef DFL_CLI_APPLY_REPORT_H_
#define DFL_CLI_APPLY_REPORT_H_

#include <vector>

#include "cli/context.h"

namespace dfl::cli {

void ReportApplied(Context& context,
                   const std::vector<Answer<client::ApplyPlanResult>>& answers,
                   bool dry_run);

}  // namespace dfl::cli

#endif  // DFL_CLI_APPLY_REPORT_H_
