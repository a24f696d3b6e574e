// The plan is one document for the whole network: this reads it from every
// target, and brings a new one to all of them.
//
// Optimistic concurrency: a new document has the highest version + 1, and each
// target takes it only if it still holds the version that was read.
#ifndef DFL_CLI_FLEET_PLAN_H_
#define DFL_CLI_FLEET_PLAN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::cli {

// What the targets hold.
struct FleetPlan {
  std::vector<Answer<client::PlanDocument>> answers;
  // Of the highest version; nullopt: nobody holds one. Where documents differ
  // at most in what they state of the data, since each was applied by itself,
  // it states what either does.
  std::optional<core::RunPlan> plan;
  bool merged = false;  // no target holds `plan` as it is
  // ABORTED when two documents share the highest version; `plan` is then the
  // first target's.
  absl::Status conflict;
};

// Reads it into `fleet`. kOk when at least one target answers and what they
// hold fits together; else says why on stderr: each target's failure when none
// answers, a conflict when two documents share the highest version, a newest
// document that is not understood here (the daemon is newer). With
// `conflict_is_fine` a conflict is only noted in `fleet`.
ExitCode ReadFleetPlan(Context& context, FleetPlan& fleet,
                       bool conflict_is_fine = false);

// The same where a plan must be there; else says the next command.
ExitCode ReadExistingPlan(Context& context, FleetPlan& fleet);

// The options of every command that changes the plan.
struct ApplyOptions {
  bool dry_run = false;
  bool start = false;
  bool wait = false;
  std::string wait_timeout = "60s";
  bool yes = false;
};
void AddApplyOptions(CLI::App& command, ApplyOptions& options);

// Where what the data mean may change, has the targets say what theirs are and
// fixes what `next` leaves open (fleet_data.h). Shows on stderr what changes
// from `fleet.plan` to `next`, gives it the next version, and applies it to all
// targets, or with dry_run has it checked by them. All targets get one record,
// which the caller signs where the network is secured; the nodes pass it on, so
// one target is enough. Prints the document with each one's answer.
// `from_file`: a person gave a whole document, so data that are open are fixed
// also where nothing else changes, and a yes is wanted at a terminal first.
ExitCode ApplyToFleet(Context& context, const FleetPlan& fleet,
                      core::CheckedPlan next, const ApplyOptions& options,
                      bool from_file = false);

// Reads the plan, lets `edit` change it, checks it, and applies it.
// `edit`'s INVALID_ARGUMENT is a mistake on the command line (exit 2).
ExitCode EditPlan(Context& context, const ApplyOptions& options,
                  const std::function<absl::Status(core::RunPlan&)>& edit);

}  // namespace dfl::cli

#endif  // DFL_CLI_FLEET_PLAN_H_
