#include "client/types.h"

namespace dfl {
namespace client {

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kUnknown:
      return "unknown";
    case Phase::kIdle:
      return "idle";
    case Phase::kJoining:
      return "joining";
    case Phase::kTraining:
      return "training";
    case Phase::kPaused:
      return "paused";
    case Phase::kFinished:
      return "finished";
    case Phase::kStopped:
      return "stopped";
    case Phase::kDegraded:
      return "degraded";
    case Phase::kFailed:
      return "failed";
  }
  return "unknown";
}

}  // namespace client
}  // namespace dfl
