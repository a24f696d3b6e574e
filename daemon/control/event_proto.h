// Events of the node as messages of dfl.control.v1, each with a sentence.
#ifndef DFL_CONTROL_EVENT_PROTO_H_
#define DFL_CONTROL_EVENT_PROTO_H_

#include "daemon/control/backend.h"
#include "daemon/ports/events.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl::control {

// False for finished steps, which watchers are not told one by one.
bool IsWatched(const ports::NodeEvent& event);

// True when watchers are told at once and not at their interval: evaluations,
// changes of phase, changes of plan.
bool IsUrgent(const ports::NodeEvent& event);

// `event` is watched.
void ToProto(const TimedEvent& event, dfl::control::v1::Event& out);

}  // namespace dfl::control

#endif  // DFL_CONTROL_EVENT_PROTO_H_
