// DataLearners on data files, with the learners that dfld has, on one thread
// each.
#ifndef DFL_SIM_TASKS_FILE_DATA_LEARNERS_H_
#define DFL_SIM_TASKS_FILE_DATA_LEARNERS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "daemon/config/node_settings.h"
#include "daemon/sim/tasks/data_task.h"

namespace dfl::sim {

// An OpenDataLearners.
absl::StatusOr<std::unique_ptr<DataLearners>> OpenFileDataLearners(
    const config::DataSettings& settings);

}  // namespace dfl::sim

#endif  // DFL_SIM_TASKS_FILE_DATA_LEARNERS_H_
