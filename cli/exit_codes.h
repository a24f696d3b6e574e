// Exit codes of dflctl: what a script may branch on.
#ifndef DFL_CLI_EXIT_CODES_H_
#define DFL_CLI_EXIT_CODES_H_

#include "absl/status/status.h"

namespace dfl::cli {

enum ExitCode : int {
  kOk = 0,
  kFailed = 1,       // refused or failed; the message says why
  kUsage = 2,        // the command line itself is wrong
  kUnreachable = 3,  // nobody answers at the target
  kNotAllowed = 4,
  kTimeout = 5,
  kPartlyDone = 6,   // some targets did it, others did not
  kConflict = 7,     // somebody else changed the plan, or plans differ
  kVersionSkew = 8,  // the daemon does not know this call
  // How a run that was watched has ended; the worst of the targets' counts.
  kTrainingFailed = 9,  // in phase failed
  kLearnedAlone = 10,   // not together with its neighbours
  kStopped = 11,        // by hand
  kOurBug = 70,
};

// The code for a failed call.
ExitCode ExitCodeOf(const absl::Status& status);

// "unreachable", "conflict", ...: the code's name in JSON.
const char* Name(ExitCode code);

// The table at the end of --help.
const char* ExitCodeHelp();

}  // namespace dfl::cli

#endif  // DFL_CLI_EXIT_CODES_H_
