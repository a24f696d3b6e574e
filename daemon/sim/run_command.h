// `dflsim run`: a scenario, or each of its variants, to a folder of results.
#ifndef DFL_SIM_RUN_COMMAND_H_
#define DFL_SIM_RUN_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "daemon/sim/command_context.h"
#include "daemon/sim/dflsim.h"
#include "daemon/sim/results.h"

namespace dfl::sim {

struct RunCommand {
  std::string file;
  uint64_t seed = 0;                  // 0: the plan's
  std::vector<std::string> variants;  // empty: all there are
  std::string out;                    // "": SCENARIO-seed-N
  int64_t jobs = 0;                   // variants at a time; 0: one a processor
  bool no_plots = false;
};

// A file without variants is one run, whose results are in the folder itself.
// Each variant has its own folder in it, and the folder has the plots that lay
// the variants over each other. If one fails, the others still run.
ExitCode RunScenario(CommandContext& context, const RunCommand& command);

// Draws the plots (plots.h). An error is reported, but is no failure.
void Draw(CommandContext& context, const std::string& folder,
          absl::Span<const RecordedRun> runs);

}  // namespace dfl::sim

#endif  // DFL_SIM_RUN_COMMAND_H_
