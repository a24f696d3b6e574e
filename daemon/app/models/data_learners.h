// LearnerFactory over this node's data files, with the learners of
// learner/opening.
#ifndef DFL_APP_MODELS_DATA_LEARNERS_H_
#define DFL_APP_MODELS_DATA_LEARNERS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "daemon/app/compute/training_threads.h"
#include "daemon/app/learner_factory.h"
#include "daemon/config/node_settings.h"
#include "daemon/learner/opening/model_learners.h"

namespace dfl::app {

// What a process has once, whatever its data: the learners of all factories
// share it.
struct Computing {
  std::shared_ptr<learner::ModelLearners> models;
  std::shared_ptr<TrainingThreads> threads;
};

// Loads nothing. Looks at the load of others for the first time.
Computing MakeComputing(const config::NodeSettings& settings);

// Reads and checks the data that `settings` name, takes this node's part and
// works out the standardisation; learners share it from then on.
// Errors: INVALID_ARGUMENT for a device that is not to be had; as data::Load,
// data::Partition and data::Standardizer. With the setting's key in front.
absl::StatusOr<std::unique_ptr<LearnerFactory>> OpenDataLearners(
    const config::NodeSettings& settings, const Computing& computing);

}  // namespace dfl::app

#endif  // DFL_APP_MODELS_DATA_LEARNERS_H_
