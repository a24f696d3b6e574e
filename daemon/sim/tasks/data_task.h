// Data from files: the plan's model is learned as dfld does it
// (file_data_learners.h).
//
// Scores are on test rows, the same for all nodes, or on training rows if there
// is no test set.
#ifndef DFL_SIM_TASKS_DATA_TASK_H_
#define DFL_SIM_TASKS_DATA_TASK_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/config/node_settings.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/learner.h"
#include "daemon/sim/problem_spec.h"
#include "daemon/sim/tasks/task.h"

namespace dfl::sim {

// Learners of all nodes on one data set. Thread-compatible.
class DataLearners {
 public:
  virtual ~DataLearners() = default;

  // Training rows of each node.
  virtual absl::Span<const int64_t> rows() const = 0;

  // From here on the labels y of node `i`'s training rows are classes - 1 - y.
  // Errors: INVALID_ARGUMENT for a regression.
  virtual absl::Status FlipLabels(int64_t i) = 0;

  // Makes a learner for `spec` on node `i`'s rows. `data_seed` is the seed of
  // its mini-batches. The learner may outlive this object.
  // Errors: as learner::ModelLearners::Create.
  virtual absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      int64_t i, const core::ModelSpec& spec, uint64_t data_seed) = 0;
};

// Reads the data and splits it among partition.count nodes. Null in tests that
// have no learners for it.
// Errors: as config::ReadDataFiles and TakePart.
using OpenDataLearners =
    std::function<absl::StatusOr<std::unique_ptr<DataLearners>>(
        const config::DataSettings& settings)>;

// `problem` is kData; the nodes are the plan's members. `flipped` of them, by
// place, learn flipped labels.
// Errors: as `open` and DataLearners::Build; UNIMPLEMENTED when `open` is null.
absl::StatusOr<std::unique_ptr<Task>> MakeDataTask(
    const ProblemSpec& problem, const core::RunPlan& plan,
    const OpenDataLearners& open, absl::Span<const int64_t> flipped = {});

}  // namespace dfl::sim

#endif  // DFL_SIM_TASKS_DATA_TASK_H_
