#include "cli/exit_codes.h"

namespace dfl::cli {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kOk;
    case absl::StatusCode::kUnavailable:
      return kUnreachable;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return kNotAllowed;
    case absl::StatusCode::kDeadlineExceeded:
      return kTimeout;
    case absl::StatusCode::kAborted:
      return kConflict;
    case absl::StatusCode::kUnimplemented:
      return kVersionSkew;
    default:
      return kFailed;
  }
}

const char* Name(ExitCode code) {
  switch (code) {
    case kOk:
      return "ok";
    case kFailed:
      return "failed";
    case kUsage:
      return "usage";
    case kUnreachable:
      return "unreachable";
    case kNotAllowed:
      return "not-allowed";
    case kTimeout:
      return "timeout";
    case kPartlyDone:
      return "partly-done";
    case kConflict:
      return "conflict";
    case kVersionSkew:
      return "version-skew";
    case kTrainingFailed:
      return "training-failed";
    case kLearnedAlone:
      return "learned-alone";
    case kStopped:
      return "stopped";
    case kOurBug:
      return "bug";
  }
  return "failed";
}

const char* ExitCodeHelp() {
  return "Exit codes:\n"
         "  0   ok\n"
         "  1   failed or refused; the message says why\n"
         "  2   the command line is wrong\n"
         "  3   unreachable: nobody answers at the target\n"
         "  4   not allowed: by role, certificate or file mode\n"
         "  5   timeout\n"
         "  6   partly done: some targets or members did it, others did not\n"
         "  7   conflict: the plan was changed by somebody else\n"
         "  8   version skew: the daemon does not know this call\n"
         "  9   watch --until-finished, wait: training has failed on a node\n"
         "  10  watch --until-finished: a node learned alone although its plan "
         "has\n"
         "      neighbours\n"
         "  11  watch --until-finished, wait: a node was stopped by hand\n"
         "  70  a bug of dflctl";
}

}  // namespace dfl::cli
