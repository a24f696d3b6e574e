#include "daemon/app/event_hub.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/control/event_proto.h"

namespace dfl::app {

using Level = config::LogLevel;

class EventHub::Handle final : public control::Subscription {
 public:
  Handle(EventHub& hub, int64_t id) : hub_(hub), id_(id) {}
  ~Handle() override {
    // Report calls under the lock, so none is running after this.
    absl::MutexLock lock(&hub_.mutex_);
    hub_.subscribers_.erase(id_);
  }

 private:
  EventHub& hub_;
  const int64_t id_;
};

EventHub::EventHub(Logger& log, std::function<absl::Time()> wall)
    : log_(log), wall_(std::move(wall)) {}

std::unique_ptr<control::Subscription> EventHub::Subscribe(
    std::function<void(const control::TimedEvent&)> on_event) {
  absl::MutexLock lock(&mutex_);
  const int64_t id = ++last_id_;
  subscribers_[id] = std::move(on_event);
  return std::make_unique<Handle>(*this, id);
}

void EventHub::Report(const ports::NodeEvent& event) {
  Log(event);
  const control::TimedEvent timed{wall_(), event};
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, subscriber] : subscribers_) subscriber(timed);
  if (!control::IsWatched(event)) return;
  kept_.push_back(timed);
  if (kept_.size() <= control::kKeptEvents) return;
  kept_.pop_front();
  ++forgotten_;
}

control::KeptEvents EventHub::Events() const {
  const absl::MutexLock lock(&mutex_);
  return {{kept_.begin(), kept_.end()}, forgotten_};
}

namespace {

// One line a fact: a level, the event's name, the text.
struct Line {
  Level level = Level::kInfo;
  const char* event = "";
  std::string text;
  // Of a change that must leave a record, however many there are.
  bool kept = false;
  LogFields fields = {};
};

struct Describe {
  static LogFields::value_type Peer(const NodeId& peer) {
    return {"peer", peer.name()};
  }
  static LogFields::value_type Step(int64_t step) {
    return {"step", absl::StrCat(step)};
  }

  Line operator()(const ports::PhaseChanged& e) const {
    return {Level::kInfo,
            "phase",
            absl::StrCat(ports::PhaseName(e.from), " -> ",
                         ports::PhaseName(e.to), ": ", e.reason),
            true,
            {{"phase", ports::PhaseName(e.to)}}};
  }
  Line operator()(const ports::PlanAdopted& e) const {
    return {Level::kInfo,
            "plan",
            absl::StrCat("plan version ", e.version, " in force from step ",
                         e.step),
            true,
            {{"plan_version", absl::StrCat(e.version)}, Step(e.step)}};
  }
  Line operator()(const ports::StateTaken& e) const {
    return {
        Level::kInfo,
        "joined",
        absl::StrCat("took the model of ", e.from.name(), " at step ", e.step),
        true,
        {Peer(e.from), Step(e.step)}};
  }
  Line operator()(const ports::StepFinished& e) const {
    return {Level::kDebug,
            "step",
            e.loss.has_value()
                ? absl::StrFormat("step %d, loss %.4f", e.step, *e.loss)
                : absl::StrCat("step ", e.step),
            false,
            {Step(e.step)}};
  }
  Line operator()(const ports::Evaluated& e) const {
    return {Level::kInfo,
            "evaluated",
            ports::EvaluatedText(e),
            false,
            {Step(e.step)}};
  }
  Line operator()(const ports::LinkUp& e) const {
    return {Level::kInfo,
            "link-up",
            e.address.empty() ? absl::StrCat(e.peer.name(), " dialled us")
                              : absl::StrCat(e.peer.name(), " at ", e.address),
            false,
            {Peer(e.peer)}};
  }
  Line operator()(const ports::LinkDown& e) const {
    return {Level::kWarning,
            "link-down",
            absl::StrCat(e.peer.name(), ": ", e.reason.message()),
            false,
            {Peer(e.peer)}};
  }
  Line operator()(const ports::PeerUnreachable& e) const {
    return {
        Level::kWarning,
        "unreachable",
        absl::StrCat(e.address, ": ", e.reason.message(), "; dialling goes on"),
        false,
        {{"address", e.address}}};
  }
  Line operator()(const ports::MessageRejected& e) const {
    return {Level::kWarning,
            "rejected",
            absl::StrCat("a message of ", e.from.name(), " (",
                         ports::RefuseReasonName(e.reason), "): ", e.text),
            false,
            {Peer(e.from), {"reason", ports::RefuseReasonName(e.reason)}}};
  }
  Line operator()(const ports::NeighboursMissed& e) const {
    return {Level::kDebug,
            "missed",
            absl::StrCat("step ", e.step, ": ", e.wanted - e.came,
                         " answers did not come in time"),
            false,
            {Step(e.step)}};
  }
  Line operator()(const ports::LearnerFailed& e) const {
    return {Level::kError,
            "learner",
            absl::StrCat("step ", e.step, ": ", e.status.message()),
            false,
            {Step(e.step)}};
  }
  Line operator()(const ports::SecurityNote& e) const {
    return {e.warning ? Level::kWarning : Level::kInfo, "security", e.text,
            !e.warning};
  }
  Line operator()(const ports::RecordCame& e) const {
    return {e.taken ? Level::kInfo : Level::kWarning, "record",
            e.from.name().empty()
                ? e.text
                : absl::StrCat("from ", e.from.name(), ": ", e.text),
            e.taken};
  }
  Line operator()(const ports::Disagrees& e) const {
    return {Level::kWarning,
            "disagrees",
            absl::StrCat(e.peer.name(), " is not mixed with: ", e.text),
            false,
            {Peer(e.peer)}};
  }
  Line operator()(const ports::LearnsAlone& e) const {
    if (e.why.empty()) {
      return {Level::kInfo, "together", "models are exchanged again", true};
    }
    return {Level::kWarning, "alone",
            absl::StrCat("this node learns alone: ", e.why), true};
  }
  Line operator()(const ports::CheckpointNote& e) const {
    return {e.warning ? Level::kWarning : Level::kInfo, "checkpoint", e.text,
            !e.warning};
  }
  Line operator()(const ports::DataNote& e) const {
    return {e.warning ? Level::kWarning : Level::kInfo, "data", e.text,
            !e.warning};
  }
  Line operator()(const ports::MemberChanged& e) const {
    return {e.present ? Level::kInfo : Level::kWarning,
            "member",
            absl::StrCat(e.node.name(), " ", e.text),
            false,
            {Peer(e.node)}};
  }
};

}  // namespace

void EventHub::Log(const ports::NodeEvent& event) {
  const Line line = std::visit(Describe(), event);
  if (line.kept) {
    return log_.Keep(line.level, line.event, line.text, line.fields);
  }
  log_.Write(line.level, line.event, line.text, line.fields);
}

}  // namespace dfl::app
