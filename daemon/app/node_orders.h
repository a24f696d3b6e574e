// What may be asked of the node's training, and what comes of it.
#ifndef DFL_APP_NODE_ORDERS_H_
#define DFL_APP_NODE_ORDERS_H_

#include "absl/status/status.h"
#include "daemon/control/backend.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/keeper/run_state.h"
#include "daemon/runtime/node.h"

namespace dfl::app {

// What an order wants, and the phase it leads to at the next boundary.
struct NodeOrder {
  absl::Status status;
  runtime::DesiredPhase wanted = runtime::DesiredPhase::kTraining;
  ports::Phase phase = ports::Phase::kTraining;
};

// Gives the order. On the loop.
NodeOrder Give(runtime::Node& node, control::TrainAction action);

// The same for what is wanted, whatever the node does now: it starts or goes
// on, pauses, or stops. What it does already is no error.
NodeOrder Give(runtime::Node& node, runtime::DesiredPhase wanted);

}  // namespace dfl::app

#endif  // DFL_APP_NODE_ORDERS_H_
