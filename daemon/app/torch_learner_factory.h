// LearnerFactory over this node's data files and LibTorch.
#ifndef DFL_APP_TORCH_LEARNER_FACTORY_H_
#define DFL_APP_TORCH_LEARNER_FACTORY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "daemon/app/learner_factory.h"
#include "daemon/config/node_settings.h"

namespace dfl::app {

// Reads and checks the data that `settings` name, takes this node's part and
// works out the standardisation; learners share it from then on.
// Errors: INVALID_ARGUMENT for a device that is not to be had; as data::Load,
// data::Partition and data::Standardizer. With the setting's key in front.
absl::StatusOr<std::unique_ptr<LearnerFactory>> OpenTorchLearnerFactory(
    const config::NodeSettings& settings);

}  // namespace dfl::app

#endif  // DFL_APP_TORCH_LEARNER_FACTORY_H_
