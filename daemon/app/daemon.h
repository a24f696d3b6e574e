// The daemon: builds the tree of rooms in order, runs until a signal, and takes
// it down in reverse.
#ifndef DFL_APP_DAEMON_H_
#define DFL_APP_DAEMON_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/app/learner_factory.h"
#include "daemon/config/node_settings.h"

namespace dfl::app {

// Exit codes of dfld.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  // e.g. an address in use
inline constexpr int kExitUsage = 2;    // the command line
inline constexpr int kExitConfig = 78;  // EX_CONFIG: what a person must mend

struct DaemonOptions {
  config::LoadedSettings loaded;
  // A file that gets the bound addresses as JSON once all listeners are up;
  // "" = none.
  std::string ready_file;
  // Reads the node's data; called before any port is bound.
  std::function<absl::StatusOr<std::unique_ptr<LearnerFactory>>(
      const config::NodeSettings&)>
      open_learners;
  // Reads the settings anew, from where `loaded` came, for SIGHUP.
  std::function<absl::StatusOr<config::LoadedSettings>()> reload;
};

// Runs until SIGTERM or SIGINT. SIGHUP has it read its settings again: what can
// change while it runs does (service/reload.h), the log names the rest, and a
// mistake in them changes nothing. Everything is stopped within 10 s; what takes
// longer is named in the log, and the process ends with kExitFailure. A second
// signal ends the process at once, which is safe: state is on disk already. So
// does a signal while it starts, as that signal would by default.
// Returns the exit code; errors are on stderr.
int RunDaemon(DaemonOptions options);

// The whole of main: command line, settings, RunDaemon.
int DaemonMain(int argc, char** argv,
               std::function<absl::StatusOr<std::unique_ptr<LearnerFactory>>(
                   const config::NodeSettings&)>
                   open_learners);

}  // namespace dfl::app

#endif  // DFL_APP_DAEMON_H_
