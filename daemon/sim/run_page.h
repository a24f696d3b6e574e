// `dflsim page`: a finished run as one HTML file, the page that dfld serves
// with the run's document in it.
#ifndef DFL_SIM_RUN_PAGE_H_
#define DFL_SIM_RUN_PAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "daemon/console/document.h"
#include "daemon/sim/command_context.h"
#include "daemon/sim/results.h"
#include "daemon/sim/scenario.h"

namespace dfl::sim {

// What the page shows of the run (docs/schema/page-run.json). `scenario` is the
// one that it is of. Of more than kMostPoints rows every second, third, ... is
// left in, and of more than kMostMembers members the first.
inline constexpr size_t kMostPoints = 1000;
inline constexpr size_t kMostMembers = 1000;
console::Json RunDocument(const RecordedRun& run, const Scenario& scenario);

struct PageCommand {
  std::string run;  // a folder of results
  std::string out;  // the file; "": page.html in the folder
};

// Writes the file and prints its name.
ExitCode WritePage(CommandContext& context, const PageCommand& command);

}  // namespace dfl::sim

#endif  // DFL_SIM_RUN_PAGE_H_
