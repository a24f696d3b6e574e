// DataLearners on LibTorch, on one thread. Linked by the program, not the room.
#ifndef DFL_SIM_TASKS_TORCH_DATA_LEARNERS_H_
#define DFL_SIM_TASKS_TORCH_DATA_LEARNERS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "daemon/config/node_settings.h"
#include "daemon/sim/tasks/data_task.h"

namespace dfl::sim {

// An OpenDataLearners.
absl::StatusOr<std::unique_ptr<DataLearners>> OpenTorchDataLearners(
    const config::DataSettings& settings);

}  // namespace dfl::sim

#endif  // DFL_SIM_TASKS_TORCH_DATA_LEARNERS_H_
