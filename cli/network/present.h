// Who is there now, as a plan that follows the network needs to know it.
#ifndef DFL_CLI_NETWORK_PRESENT_H_
#define DFL_CLI_NETWORK_PRESENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "client/types.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/member_spec.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::cli {

// The members of the table that a plan may have: neither gone nor draining.
std::vector<core::MemberSpec> PresentMembers(const client::MemberTable& table);

// The table of the first target that answers.
// Errors: as ControlClient::Members.
absl::StatusOr<client::MemberTable> ReadMembers(Context& context);

// Fills in the members of a plan that follows the network; any other plan has
// them. Errors: as ReadMembers.
absl::Status ResolveMembers(Context& context, core::RunPlan& plan);

// Says on stderr what a person should know of the plan among the members that
// are there, such as that its graph falls apart. Nothing where nobody can tell.
void WarnOfMembers(Context& context, const core::CheckedPlan& plan);

// Says on stderr that no member is called `node` at the moment, with the
// nearest name. Nothing where nobody can tell.
void WarnOfStranger(Context& context, const std::string& node);

}  // namespace dfl::cli

#endif  // DFL_CLI_NETWORK_PRESENT_H_
