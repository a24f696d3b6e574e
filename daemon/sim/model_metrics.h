// What the models of the nodes in the run are worth at a moment, for a row of
// metrics.
#ifndef DFL_SIM_MODEL_METRICS_H_
#define DFL_SIM_MODEL_METRICS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/sim/members.h"
#include "daemon/sim/metrics.h"
#include "daemon/sim/plan_versions.h"
#include "daemon/sim/simulation_result.h"
#include "daemon/sim/tasks/task.h"

namespace dfl::sim {

class ModelMetrics {
 public:
  // All must outlive it. `extra`: what is measured on request
  // (extra_metrics.h).
  ModelMetrics(const std::vector<std::string>& extra, Task& task,
               const Members& members, const PlanVersions& versions)
      : extra_(extra), task_(task), members_(members), versions_(versions) {}

  // Losses, accuracies and consensus error into `row`, and each node by itself
  // into `nodes`. At least one node is in the run.
  // Errors: as Task's.
  absl::Status Measure(MetricsRow& row, std::vector<NodeScore>& nodes);

 private:
  // The mean model, in double and as a model.
  struct Mean {
    std::vector<double> exact;
    std::vector<float> parameters;
    std::vector<float> buffers;
  };
  Mean MeanModel() const;
  absl::Status MeasureMean(const Mean& mean, MetricsRow& row);
  absl::Status MeasureNodes(const Mean& mean, MetricsRow& row,
                            std::vector<NodeScore>& nodes);
  // Of the nodes of the newest tracker epoch.
  std::optional<double> Drift() const;

  absl::Status MeasureExtras(const ModelView& mean, MetricsRow& row);
  // Of the nodes in the run; nullopt while one of them runs an algorithm
  // without such a vector.
  absl::StatusOr<std::optional<double>> GradientError();
  std::optional<double> AuxiliaryConsensusError(absl::string_view symbol) const;
  // Of the members and the algorithm of the newest plan.
  absl::StatusOr<double> ProximalGradient(const ModelView& mean);

  const std::vector<std::string>& extra_;
  Task& task_;
  const Members& members_;
  const PlanVersions& versions_;
};

}  // namespace dfl::sim

#endif  // DFL_SIM_MODEL_METRICS_H_
