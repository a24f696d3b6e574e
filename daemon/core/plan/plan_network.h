// What checks, derivation and warnings of a plan share: the plan's members as a
// whole.
#ifndef DFL_CORE_PLAN_PLAN_NETWORK_H_
#define DFL_CORE_PLAN_PLAN_NETWORK_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithm/network.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::core {

// A message lists at most so many names.
constexpr size_t kNamesShown = 8;

// Whether the rows of every member that has data are known.
bool RowsKnown(const RunPlan& plan);

// INVALID_ARGUMENT "`key`: "bob" is no member; did you mean ...".
absl::Status UnknownMemberError(const std::string& key, const NodeId& node,
                                const RunPlan& plan);

// The members with their knobs, in the round of `graph`. The plan has passed
// CheckPlan, and names `algorithm`.
// Errors: as Knobs::Resolve.
absl::StatusOr<Network> NetworkOf(const RunPlan& plan,
                                  const AlgorithmInfo& algorithm,
                                  const AnyGraph& graph);

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_PLAN_NETWORK_H_
