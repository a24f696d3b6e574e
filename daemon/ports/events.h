// Port: what happened in the node, as typed facts. Rooms report; app fans out
// to the log, metrics and control's Watch. Nobody else logs.
#ifndef DFL_PORTS_EVENTS_H_
#define DFL_PORTS_EVENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/learner.h"

namespace dfl::ports {

struct PhaseChanged {
  Phase from = Phase::kIdle;
  Phase to = Phase::kIdle;
  std::string reason;
};

struct PlanAdopted {
  uint64_t version = 0;
  int64_t step = 0;
};

// The node took its model and step from a neighbour.
struct StateTaken {
  NodeId from;
  int64_t step = 0;
  int64_t round = 0;
};

// An iteration ended.
struct StepFinished {
  int64_t step = 0;            // number of finished steps
  std::optional<double> loss;  // nullopt: no gradient yet
  int64_t round = 0;           // number of finished rounds
};

struct Evaluated {
  int64_t step = 0;
  Evaluation result;
};
// "step 200: loss 0.4102, accuracy 0.8810, macro F1 0.8790 on 1000 rows"
std::string EvaluatedText(const Evaluated& event);

struct LinkUp {
  NodeId peer;
  std::string address;  // "" when it dialled us
};

struct LinkDown {
  NodeId peer;
  absl::Status reason;
};

// Dialling `address` fails; reported at the first failure and at each change
// of cause, not at every attempt.
struct PeerUnreachable {
  std::string address;
  absl::Status reason;
};

// A neighbour's message was refused, and the node went on.
struct MessageRejected {
  NodeId from;
  RefuseReason reason = RefuseReason::kBadMessage;
  std::string text;
};

// A deadline passed with fewer neighbours than wanted.
struct NeighboursMissed {
  int64_t step = 0;
  int64_t wanted = 0;
  int64_t came = 0;
};

// Training or evaluation failed on this node.
struct LearnerFailed {
  int64_t step = 0;
  absl::Status status;
};

// Certificates were replaced, are wrong or will expire; strangers were refused.
struct SecurityNote {
  bool warning = false;
  std::string text;
};

// A signed record came.
struct RecordCame {
  bool taken = false;
  NodeId from;       // who passed it on; empty: it came by control
  std::string text;  // what it is, and why it was refused
};

// A neighbour is linked and no models are mixed with it, since it means
// something else; reported once for each cause.
struct Disagrees {
  NodeId peer;
  std::string text;  // what differs, with both sides' values
};

// The node learns alone although its plan gives it neighbours; once, and once
// when it is over.
struct LearnsAlone {
  std::string why;  // "": no longer
};

// Another member came, went, or is believed to do other than before.
struct MemberChanged {
  NodeId node;
  bool present = false;  // it is alive, or may be
  std::string text;      // "is dead: did not answer", "joined"
};

// Of checkpoints: one was gone on from or left aside; they are not written, or
// are again.
struct CheckpointNote {
  bool warning = false;
  std::string text;
};

// Of the node's own data: other rows were taken up; files that have changed
// cannot be, or are in order again.
struct DataNote {
  bool warning = false;
  std::string text;
};

using NodeEvent =
    std::variant<PhaseChanged, PlanAdopted, StateTaken, StepFinished, Evaluated,
                 LinkUp, LinkDown, PeerUnreachable, MessageRejected,
                 NeighboursMissed, LearnerFailed, SecurityNote, RecordCame,
                 Disagrees, LearnsAlone, MemberChanged, CheckpointNote,
                 DataNote>;

class EventSink {
 public:
  virtual ~EventSink() = default;
  // Called on the node's loop; must be quick and must not call back.
  virtual void Report(const NodeEvent& event) = 0;
};

}  // namespace dfl::ports

#endif  // DFL_PORTS_EVENTS_H_
