// The folder a run leaves behind, and reading it again.
//
//   scenario.yaml   as it was given
//   metrics.csv     metrics.h
//   summary.json    seed, digest, how it ended, the last row, the command that
//                   replays it
//   loss.png, consensus.png, bytes.png, accuracy.png where there are classes,
//   drift.png where something is conserved, sparsity.png where a proximal step
//   is taken, phi.png where there is a penalty, NAME.png for each of
//   network.metrics, and the same as .svg (plots.h)
#ifndef DFL_SIM_RESULTS_H_
#define DFL_SIM_RESULTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/console/document.h"
#include "daemon/sim/metrics.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/simulation.h"

namespace dfl::sim {

// 16 hexadecimal digits.
std::string DigestText(uint64_t digest);

// "dflsim run FILE --seed N", as a shell takes it.
std::string ReplayCommand(const Scenario& scenario);

// The content of summary.json. The same run gives the same text.
console::Json SummaryJson(const Scenario& scenario, const Result& result);

// Makes `folder` if it does not exist, and writes the first three files.
// Errors: as AtomicFile; FAILED_PRECONDITION if `folder` is not a folder.
absl::Status WriteResults(const std::string& folder, const Scenario& scenario,
                          const Result& result);

// One finished run.
struct RecordedRun {
  std::string folder;
  std::string title;  // the folder's name
  console::Json summary;
  std::vector<MetricsRow> rows;
};

// Errors: NOT_FOUND when `folder` holds no results; INVALID_ARGUMENT names the
// file that is broken.
absl::StatusOr<RecordedRun> ReadRun(const std::string& folder);

// One row for each run: how it ended, and its last figures.
console::Json CompareJson(absl::Span<const RecordedRun> runs);
std::string CompareText(absl::Span<const RecordedRun> runs);

}  // namespace dfl::sim

#endif  // DFL_SIM_RESULTS_H_
