// The knobs of the plan's algorithm that one noun of the command line shows
// and sets; their table comes from core's catalogue.
#ifndef DFL_CLI_KNOB_NOUN_H_
#define DFL_CLI_KNOB_NOUN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::cli {

// Sets "NAME=VALUE" knobs of `noun` for all nodes, or for `node` alone when it
// is not empty. The value "default" removes a setting.
// Errors: INVALID_ARGUMENT for a change that is no NAME=VALUE, an unknown knob
// (with the nearest one, or the noun that sets it), a value that is not
// allowed, or a node that is no member of a fixed set.
absl::Status SetKnobs(core::KnobNoun noun,
                      const std::vector<std::string>& changes,
                      const std::string& node, core::RunPlan& plan);

// "NOUN show" and "NOUN set [--node NAME] knob=value...". `example`: knobs to
// set, such as "nu=0.5 p=0.1".
void AddKnobNoun(CLI::App& app, const char* name, const char* help,
                 const char* example, core::KnobNoun noun, Chosen& chosen);

}  // namespace dfl::cli

#endif  // DFL_CLI_KNOB_NOUN_H_
