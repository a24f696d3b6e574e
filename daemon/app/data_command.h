// Commands about a node's data that end without serving: dfld data FILE...
// guesses the settings that read these files, and dfld --check reads what the
// settings name.
#ifndef DFL_APP_DATA_COMMAND_H_
#define DFL_APP_DATA_COMMAND_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/app/learner_factory.h"
#include "daemon/config/node_settings.h"

namespace dfl::app {

// Reads the data that `settings` name and prints to stdout what was understood.
// With run.plan it builds that plan's model on them, which `open_learners`
// does, and prints what it is.
// Errors: as config::ReadDataFiles and TakePart; as ParsePlan, core::Resolve
// and LearnerFactory::Build, with run.plan in front.
absl::Status CheckData(
    const config::NodeSettings& settings,
    const std::function<absl::StatusOr<std::unique_ptr<LearnerFactory>>(
        const config::NodeSettings&)>& open_learners);

// True when the first argument is "data".
bool IsDataCommand(int argc, const char* const* argv);

// The whole command: the section for the configuration file goes to stdout;
// what was taken for granted, what the files hold and warnings go to stderr.
// Returns the exit code, see daemon.h.
int DataMain(int argc, const char* const* argv);

}  // namespace dfl::app

#endif  // DFL_APP_DATA_COMMAND_H_
