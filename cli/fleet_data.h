// One meaning of the data over all targets: asked of them before a plan is
// applied, so that nodes that disagree are told before they learn.
#ifndef DFL_CLI_FLEET_DATA_H_
#define DFL_CLI_FLEET_DATA_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/context.h"
#include "client/types.h"
#include "daemon/core/contract/data_offer.h"
#include "daemon/core/contract/data_section.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::cli {

// What a node says of its data, as the comparison takes it.
core::DataOffer OfferOf(const client::NodeData& data);
core::DataContract ContractOf(const client::DataContract& from);

// Whether `data` leaves open what the first apply fixes.
bool IsOpen(const core::DataSection& data);

// The plan's data section with what `held`, the section in force, states where
// the plan states nothing: what was fixed once stays. `held_model` is the model
// in force; what the plan's own model contradicts is not taken over.
core::DataSection KeepFixed(const core::RunPlan& plan,
                            const core::DataSection& held,
                            const core::ModelSpec& held_model);

// What `a` or `b` states; nullopt where both do and they differ.
std::optional<core::DataSection> Merged(const core::DataSection& a,
                                        const core::DataSection& b);

struct FleetData {
  core::DataSection section;
  // Targets that could not say it, of those in `ask`. An error of transport is
  // not in it: the apply meets it again.
  std::map<std::string, absl::Status> refused;
};

// Asks the targets in `ask` what their data are under `plan`, and fixes what
// its section leaves open. Says on stderr what a person should look at in the
// data, which targets are too old to be compared, and which members of the plan
// were not asked where something was fixed without them.
// Errors: FAILED_PRECONDITION where they disagree with each other or with the
// plan: both sides' values, and the setting that mends it; or where a target's
// data do not fit the model. DEADLINE_EXCEEDED where a target that was reached
// has not said in time what its data are.
absl::StatusOr<FleetData> FixData(Context& context, const core::RunPlan& plan,
                                  const std::vector<std::string>& ask);

}  // namespace dfl::cli

#endif  // DFL_CLI_FLEET_DATA_H_
