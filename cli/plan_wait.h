// Waits until a plan is in force everywhere: on the targets, and on all members
// that a target knows of.
#ifndef DFL_CLI_PLAN_WAIT_H_
#define DFL_CLI_PLAN_WAIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/context.h"
#include "client/types.h"

namespace dfl::cli {

struct AppliedPlan {
  uint64_t version = 0;
  std::string yaml;
};

// A member that does not have the plan in force.
struct NotAdopted {
  std::string node;
  std::string why;  // "degraded: plan version 3 is not taken up: ..."
};

struct Adoption {
  // ABORTED: another edit has won, and says so. Else: who has it could not be
  // asked.
  absl::Status status;
  size_t adopted = 0;  // members that have it
  std::vector<NotAdopted> missing;
};

// Returns when every target that took the plan, and every member that is there
// and takes part, has it in force; when another plan has taken its place; when
// those that have not are degraded for 5 s; or after `timeout`. A target whose
// own plan is late gets that as its answer.
Adoption WaitAdopted(Context& context, absl::Duration timeout,
                     const AppliedPlan& plan,
                     std::vector<Answer<client::ApplyPlanResult>>& answers);

// Says who has not, and why. Returns 0 when all have it, 7 when another edit
// has won, 6 when some have it, 5 when none has.
ExitCode ConcludeAdoption(Context& context, const Adoption& adoption);

}  // namespace dfl::cli

#endif  // DFL_CLI_PLAN_WAIT_H_
