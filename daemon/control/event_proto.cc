#include "daemon/control/event_proto.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;

std::string Reason(const absl::Status& status) {
  return status.message().empty() ? absl::StatusCodeToString(status.code())
                                  : std::string(status.message());
}

struct Writer {
  pb::Event& out;

  void operator()(const ports::PhaseChanged& e) const {
    out.set_kind(pb::EVENT_KIND_PHASE_CHANGED);
    out.set_text(absl::StrCat(ports::PhaseName(e.from), " -> ",
                              ports::PhaseName(e.to),
                              e.reason.empty() ? "" : ": ", e.reason));
  }
  void operator()(const ports::PlanAdopted& e) const {
    out.set_kind(pb::EVENT_KIND_PLAN_ADOPTED);
    out.set_step(e.step);
    out.set_text(absl::StrCat("plan version ", e.version,
                              " in force from step ", e.step));
  }
  void operator()(const ports::StateTaken& e) const {
    out.set_kind(pb::EVENT_KIND_STATE_TAKEN);
    out.set_step(e.step);
    out.set_peer(e.from.name());
    out.set_text(
        absl::StrCat("model and step ", e.step, " taken from ", e.from.name()));
  }
  void operator()(const ports::StepFinished& e) const {
    out.set_step(e.step);
    out.set_text(absl::StrCat("step ", e.step));
  }
  void operator()(const ports::Evaluated& e) const {
    out.set_kind(pb::EVENT_KIND_EVALUATED);
    out.set_step(e.step);
    out.set_text(ports::EvaluatedText(e));
  }
  void operator()(const ports::LinkUp& e) const {
    out.set_kind(pb::EVENT_KIND_LINK_UP);
    out.set_peer(e.peer.name());
    out.set_text(
        e.address.empty()
            ? absl::StrCat("linked with ", e.peer.name(), ", which dialled")
            : absl::StrCat("linked with ", e.peer.name(), " at ", e.address));
  }
  void operator()(const ports::LinkDown& e) const {
    out.set_kind(pb::EVENT_KIND_LINK_DOWN);
    out.set_peer(e.peer.name());
    out.set_text(absl::StrCat("link with ", e.peer.name(),
                              " is down: ", Reason(e.reason)));
  }
  void operator()(const ports::PeerUnreachable& e) const {
    out.set_kind(pb::EVENT_KIND_PEER_UNREACHABLE);
    out.set_text(
        absl::StrCat("cannot reach ", e.address, ": ", Reason(e.reason)));
  }
  void operator()(const ports::MessageRejected& e) const {
    out.set_kind(pb::EVENT_KIND_MESSAGE_REJECTED);
    out.set_peer(e.from.name());
    out.set_text(absl::StrCat("a message of ", e.from.name(), " was refused: ",
                              ports::RefuseReasonName(e.reason),
                              e.text.empty() ? "" : ", ", e.text));
  }
  void operator()(const ports::NeighboursMissed& e) const {
    out.set_kind(pb::EVENT_KIND_NEIGHBOURS_MISSED);
    out.set_step(e.step);
    out.set_text(absl::StrCat("step ", e.step, ": ", e.came, " of ", e.wanted,
                              " neighbours came in time"));
  }
  void operator()(const ports::LearnerFailed& e) const {
    out.set_kind(pb::EVENT_KIND_LEARNER_FAILED);
    out.set_step(e.step);
    out.set_text(
        absl::StrCat("step ", e.step, ": training failed: ", Reason(e.status)));
  }
  void operator()(const ports::SecurityNote& e) const {
    out.set_kind(pb::EVENT_KIND_SECURITY);
    out.set_text(e.text);
  }
  void operator()(const ports::RecordCame& e) const {
    out.set_kind(pb::EVENT_KIND_RECORD);
    out.set_peer(e.from.name());
    out.set_text(e.text);
  }
  void operator()(const ports::Disagrees& e) const {
    out.set_kind(pb::EVENT_KIND_DISAGREES);
    out.set_peer(e.peer.name());
    out.set_text(absl::StrCat(e.peer.name(), " is not mixed with: ", e.text));
  }
  void operator()(const ports::LearnsAlone& e) const {
    out.set_kind(pb::EVENT_KIND_LEARNS_ALONE);
    out.set_text(e.why.empty()
                     ? "models are exchanged again"
                     : absl::StrCat("the node learns alone: ", e.why));
  }
  void operator()(const ports::CheckpointNote& e) const {
    out.set_kind(pb::EVENT_KIND_CHECKPOINT);
    out.set_text(e.text);
  }
  void operator()(const ports::DataNote& e) const {
    out.set_kind(pb::EVENT_KIND_DATA);
    out.set_text(absl::StrCat("data: ", e.text));
  }
  void operator()(const ports::MemberChanged& e) const {
    out.set_kind(pb::EVENT_KIND_MEMBER);
    out.set_peer(e.node.name());
    out.set_text(absl::StrCat(e.node.name(), " ", e.text));
  }
};

}  // namespace

bool IsWatched(const ports::NodeEvent& event) {
  return !std::holds_alternative<ports::StepFinished>(event);
}

bool IsUrgent(const ports::NodeEvent& event) {
  return std::holds_alternative<ports::Evaluated>(event) ||
         std::holds_alternative<ports::PhaseChanged>(event) ||
         std::holds_alternative<ports::PlanAdopted>(event);
}

void ToProto(const TimedEvent& event, pb::Event& out) {
  out.set_unix_nanos(absl::ToUnixNanos(event.at));
  std::visit(Writer{out}, event.event);
}

}  // namespace dfl::control
