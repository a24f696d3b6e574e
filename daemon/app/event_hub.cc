#include "daemon/app/event_hub.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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

EventHub::EventHub(const ports::Loop& clock, Logger& log)
    : clock_(clock), log_(log) {}

std::unique_ptr<control::Subscription> EventHub::Subscribe(
    std::function<void(const control::TimedEvent&)> on_event) {
  absl::MutexLock lock(&mutex_);
  const int64_t id = ++last_id_;
  subscribers_[id] = std::move(on_event);
  return std::make_unique<Handle>(*this, id);
}

void EventHub::Report(const ports::NodeEvent& event) {
  Log(event);
  const control::TimedEvent timed{clock_.Now(), event};
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, subscriber] : subscribers_) subscriber(timed);
}

namespace {

// One line a fact: a level, the event's name, the text.
struct Line {
  Level level = Level::kInfo;
  const char* event = "";
  std::string text;
};

struct Describe {
  Line operator()(const ports::PhaseChanged& e) const {
    return {Level::kInfo, "phase",
            absl::StrCat(ports::PhaseName(e.from), " -> ",
                         ports::PhaseName(e.to), ": ", e.reason)};
  }
  Line operator()(const ports::PlanAdopted& e) const {
    return {Level::kInfo, "plan",
            absl::StrCat("plan version ", e.version, " in force from step ",
                         e.step)};
  }
  Line operator()(const ports::StateTaken& e) const {
    return {
        Level::kInfo, "joined",
        absl::StrCat("took the model of ", e.from.name(), " at step ", e.step)};
  }
  Line operator()(const ports::StepFinished& e) const {
    return {Level::kDebug, "step",
            absl::StrFormat("step %d, loss %.4f", e.step, e.loss)};
  }
  Line operator()(const ports::Evaluated& e) const {
    return {Level::kInfo, "evaluated",
            absl::StrFormat(
                "step %d: loss %.4f, accuracy %.4f, macro F1 %.4f on %d rows",
                e.step, e.result.loss, e.result.accuracy, e.result.macro_f1,
                e.result.rows)};
  }
  Line operator()(const ports::LinkUp& e) const {
    return {Level::kInfo, "link-up",
            e.address.empty() ? absl::StrCat(e.peer.name(), " dialled us")
                              : absl::StrCat(e.peer.name(), " at ", e.address)};
  }
  Line operator()(const ports::LinkDown& e) const {
    return {Level::kWarning, "link-down",
            absl::StrCat(e.peer.name(), ": ", e.reason.message())};
  }
  Line operator()(const ports::PeerUnreachable& e) const {
    return {Level::kWarning, "unreachable",
            absl::StrCat(e.address, ": ", e.reason.message(),
                         "; dialling goes on")};
  }
  Line operator()(const ports::MessageRejected& e) const {
    return {Level::kWarning, "rejected",
            absl::StrCat("a message of ", e.from.name(), " (",
                         ports::RefuseReasonName(e.reason), "): ", e.text)};
  }
  Line operator()(const ports::NeighboursMissed& e) const {
    return {Level::kDebug, "missed",
            absl::StrCat("step ", e.step, ": ", e.wanted - e.came,
                         " answers did not come in time")};
  }
  Line operator()(const ports::LearnerFailed& e) const {
    return {Level::kError, "learner",
            absl::StrCat("step ", e.step, ": ", e.status.message())};
  }
  Line operator()(const ports::SecurityNote& e) const {
    return {e.warning ? Level::kWarning : Level::kInfo, "security", e.text};
  }
  Line operator()(const ports::RecordCame& e) const {
    return {e.taken ? Level::kInfo : Level::kWarning, "record",
            e.from.name().empty()
                ? e.text
                : absl::StrCat("from ", e.from.name(), ": ", e.text)};
  }
};

}  // namespace

void EventHub::Log(const ports::NodeEvent& event) {
  const Line line = std::visit(Describe(), event);
  log_.Write(line.level, line.event, line.text);
}

}  // namespace dfl::app
