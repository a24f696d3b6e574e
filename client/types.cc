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

const char* MemberStateName(MemberState state) {
  switch (state) {
    case MemberState::kUnknown:
      return "unknown";
    case MemberState::kAlone:
      return "alone";
    case MemberState::kJoining:
      return "joining";
    case MemberState::kMember:
      return "member";
    case MemberState::kDegraded:
      return "degraded";
    case MemberState::kDraining:
      return "draining";
    case MemberState::kLeft:
      return "left";
    case MemberState::kDead:
      return "dead";
  }
  return "unknown";
}

const char* ParticipationName(Participation participation) {
  switch (participation) {
    case Participation::kUnknown:
      return "unknown";
    case Participation::kTrain:
      return "train";
    case Participation::kMix:
      return "mix";
    case Participation::kObserve:
      return "observe";
  }
  return "unknown";
}

std::string ToString(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace client
}  // namespace dfl
