// Pictures of runs, drawn by gnuplot as PNG and SVG. Loss, consensus error,
// accuracy, drift, sparsity, loss with penalty and what network.metrics asks
// for are drawn against steps, virtual time and bytes sent; bytes are drawn
// against steps and time.
#ifndef DFL_SIM_PLOTS_H_
#define DFL_SIM_PLOTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/sim/results.h"

namespace dfl::sim {

// The script for gnuplot. It contains the data, and draws the pictures in the
// folder in which it runs.
std::string PlotScript(absl::Span<const RecordedRun> runs);

// Writes plot.gp and {loss,consensus,bytes}.{png,svg} to `folder`, which
// exists; {accuracy,drift,sparsity,phi}.{png,svg} and those of extra metrics,
// by their names, if a run has them. `gnuplot` is the program's name or path.
// Errors: NOT_FOUND when there is no such program; INTERNAL when it fails.
absl::Status DrawPlots(const std::string& folder,
                       absl::Span<const RecordedRun> runs,
                       const std::string& gnuplot = "gnuplot");

}  // namespace dfl::sim

#endif  // DFL_SIM_PLOTS_H_
