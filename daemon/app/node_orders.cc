#include "daemon/app/node_orders.h"

namespace dfl::app {

using control::TrainAction;
using ports::Phase;
using runtime::DesiredPhase;

NodeOrder Give(runtime::Node& node, TrainAction action) {
  switch (action) {
    case TrainAction::kStart: {
      const absl::Status status = node.Start();
      return {status, DesiredPhase::kTraining, node.phase()};
    }
    case TrainAction::kResume: {
      const absl::Status status = node.Resume();
      return {status, DesiredPhase::kTraining, node.phase()};
    }
    case TrainAction::kPause:
      return {node.Pause(), DesiredPhase::kPaused, Phase::kPaused};
    case TrainAction::kStop:
      return {node.Stop(), DesiredPhase::kStopped, Phase::kStopped};
  }
  return {absl::InvalidArgumentError("there is no such order")};
}

NodeOrder Give(runtime::Node& node, DesiredPhase wanted) {
  const Phase phase = node.phase();
  const bool trains = phase == Phase::kTraining || phase == Phase::kJoining ||
                      phase == Phase::kDegraded;
  switch (wanted) {
    case DesiredPhase::kIdle:
      break;
    case DesiredPhase::kTraining:
      // An order to halt may still wait for the boundary: it is taken back.
      if (trains) return Give(node, TrainAction::kResume);
      return Give(node, phase == Phase::kPaused ? TrainAction::kResume
                                                : TrainAction::kStart);
    case DesiredPhase::kPaused:
      if (!trains) {
        // It stays as it is; if it was to train once it takes part, that is
        // over.
        (void)node.Pause();
        return {absl::OkStatus(), wanted, node.phase()};
      }
      return Give(node, TrainAction::kPause);
    case DesiredPhase::kStopped:
      if (phase == Phase::kStopped) return {absl::OkStatus(), wanted, phase};
      return Give(node, TrainAction::kStop);
  }
  return {absl::InvalidArgumentError("nobody can want a node to be idle")};
}

}  // namespace dfl::app
