// Who takes part in a run. A plan names a fixed set of nodes, or it follows the
// network: all its members, or those that a selector names.
//
// RunPlan::participants is what the document says, RunPlan::members who that
// is. A plan that follows the network has no members until ResolveParticipants
// has filled them in from who is there. It is a pure function, so nodes that
// know the same members have the same graph.
//
// A plan without members yet passes CheckPlan as far as it can be checked.
#ifndef DFL_CORE_PLAN_PARTICIPANTS_H_
#define DFL_CORE_PLAN_PARTICIPANTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/check_plan.h"
#include "daemon/core/plan/member_spec.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::core {

// Whether members come and go without a new version of the plan.
inline bool FollowsView(const RunPlan& plan) {
  return plan.participants.kind != ParticipantsSpec::Kind::kFixed;
}

// Errors: INVALID_ARGUMENT "participants[1]: ..." for a selector that is
// neither a node's name nor a label "site=north", that is not in order or there
// twice; for none at all; for what only a fixed set can have, such as the rows
// of a mixing matrix.
absl::Status CheckParticipants(const RunPlan& plan);

// What is wrong with a selector; OK: nothing. The text names no key.
// Errors: INVALID_ARGUMENT.
absl::Status CheckSelector(absl::string_view selector);

// Fills plan.members in. `present` are the members of the network that are
// there and do not drain, in any order, no doubles.
//   kAll       those of them that train or mix
//   kSelected  of these, those that a selector names
//   kFixed     the named ones, there or not; what the plan leaves open of one
//              that is there (its rows, whether it can be dialled) is filled in
// Nodes that only watch are in none. Those that mix without data are members
// only where the algorithm can use them (AlgorithmInfo::mixes_without_data),
// with no rows. There may be no member afterwards: then nobody trains, and the
// plan waits for a first one.
void ResolveParticipants(RunPlan& plan, absl::Span<const MemberSpec> present,
                         const Catalogue& catalogue = BuiltInCatalogue());

// "all", "box-1, site=north", "the fixed set anna, bert".
std::string ParticipantsText(const RunPlan& plan);

// What a person should know of a plan among the members that are there, beside
// PlanWarnings: that a selector names nobody, who of a fixed set is missing and
// whether the graph of the others falls apart, that nobody takes part.
// `checked` need not be resolved. Each begins with a key.
std::vector<std::string> ViewWarnings(
    const CheckedPlan& checked, absl::Span<const MemberSpec> present,
    const Catalogue& catalogue = BuiltInCatalogue());

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_PARTICIPANTS_H_
