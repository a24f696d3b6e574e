// The rows of metrics of a run, taken every so many steps, and what follows
// from them: whether the run has settled, and how far it is.
#ifndef DFL_SIM_METRICS_ROWS_H_
#define DFL_SIM_METRICS_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/sim/members.h"
#include "daemon/sim/metrics.h"
#include "daemon/sim/model_metrics.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/simulation_result.h"
#include "daemon/simports/sim_network.h"

namespace dfl::sim {

class MetricsRows {
 public:
  // All must outlive it.
  MetricsRows(const Scenario& scenario, const Members& members,
              const simports::SimNetwork& network, ModelMetrics models)
      : scenario_(scenario),
        members_(members),
        network_(network),
        models_(models) {}

  // Whether the nodes have come as far as the next row.
  bool Due() const;
  // Takes a row; one that is there already is not taken twice. `passed`: since
  // the first node began to train.
  // Errors: as ModelMetrics::Measure.
  absl::Status Take(absl::Duration passed);

  const std::vector<MetricsRow>& rows() const { return rows_; }
  // Of the last row.
  const std::vector<NodeScore>& nodes() const { return nodes_; }
  // Whether network.settled_below holds.
  bool HasSettled() const;

  // Before training began `progress.last` is empty.
  Progress MakeProgress(int64_t steps) const;
  // The same with what is known `passed` after training began under a stop
  // rule.
  Progress MakeProgress(int64_t steps, absl::Duration passed,
                        const core::StopRule& stop) const;

 private:
  // The steps or rounds of a node, on average; some are in the run.
  int64_t Counted() const {
    return (scenario_.metrics_by_rounds ? members_.round_sum()
                                        : members_.step_sum()) /
           members_.in_run();
  }

  const Scenario& scenario_;
  const Members& members_;
  const simports::SimNetwork& network_;
  ModelMetrics models_;
  std::vector<MetricsRow> rows_;
  std::vector<NodeScore> nodes_;
  int64_t next_row_ = 0;
};

}  // namespace dfl::sim

#endif  // DFL_SIM_METRICS_ROWS_H_
