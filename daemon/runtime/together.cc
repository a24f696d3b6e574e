#include "daemon/runtime/together.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace dfl::runtime {
namespace {

// A plan comes to both ends, but not at once; details of a disagreement take a
// moment.
constexpr absl::Duration kBeforeTelling = absl::Seconds(1);
constexpr absl::Duration kLeastGrace = absl::Seconds(2);
constexpr absl::Duration kLeastTick = absl::Milliseconds(250);
constexpr absl::Duration kLongestTick = absl::Seconds(1);
// Neighbours that a text names.
constexpr size_t kNamed = 4;

}  // namespace

Together::Together(OwnState& own, const PeerTable& peers,
                   Neighbourhood& neighbourhood, ports::Loop& loop,
                   ports::EventSink& events)
    : own_(own),
      peers_(peers),
      neighbourhood_(neighbourhood),
      loop_(loop),
      events_(events) {
  own_.phases.SetEndNote([this] { return EndNote(); });
}

Together::~Together() {
  loop_.Cancel(timer_);
  for (const auto& [peer, entry] : disagreements_) loop_.Cancel(entry.timer);
}

bool Together::Mixes(const NodeId& neighbour) const {
  if (ended_with_.has_value()) return ended_with_->count(neighbour) > 0;
  return own_.phases.Running() && neighbourhood_.HasAny() &&
         neighbourhood_.ExchangedWith(neighbour) &&
         neighbourhood_.WhyNot(neighbour).empty();
}

std::string Together::NotMixing(const NodeId& neighbour) const {
  if (Mixes(neighbour)) return "";
  if (!neighbourhood_.HasAny()) return "the algorithm exchanges no models";
  std::string why = neighbourhood_.WhyNot(neighbour);
  if (!why.empty()) return why;
  return own_.phases.Running()
             ? "no model was exchanged with it yet"
             : absl::StrCat("this node is ",
                            ports::PhaseName(own_.phases.now()));
}

// --------------------------------------------------------- disagreements ----

void Together::OnState(const NodeId& peer) {
  neighbourhood_.Compare(peer);
  const auto known = peers_.all().find(peer);
  if (known == peers_.all().end() || !known->second.known) return;
  std::string cause;
  neighbourhood_.Disagreement(peer, &cause);
  const auto found = disagreements_.find(peer);
  if (cause.empty()) {
    if (found == disagreements_.end()) return;
    loop_.Cancel(found->second.timer);
    disagreements_.erase(found);
    return;
  }
  Disagreement& entry = disagreements_[peer];
  if (entry.cause == cause) return;
  entry.cause = cause;
  entry.told = false;
  if (entry.timer != 0) return;
  entry.timer = loop_.After(kBeforeTelling, [this, peer] { Tell(peer); });
}

void Together::Tell(const NodeId& peer) {
  Disagreement& entry = disagreements_[peer];
  entry.timer = 0;
  const std::string text = neighbourhood_.Disagreement(peer, &entry.cause);
  // It may have gone meanwhile; a new link says it again.
  if (text.empty()) {
    disagreements_.erase(peer);
  } else if (!std::exchange(entry.told, true)) {
    events_.Report(ports::Disagrees{peer, text});
  }
}

// ----------------------------------------------------------------- alone ----

void Together::LookAtPlan() {
  std::shared_ptr<const core::RunPlan> before =
      std::exchange(plan_, own_.run.shared_plan());
  if (before == nullptr || before->run_id != plan_->run_id) {
    neighbourhood_.BeginRun();
    seen_ = 0;
    last_step_ = 0;
    alone_.clear();
    ended_with_.reset();
  }
  std::vector<NodeId> all;
  for (const auto& [id, peer] : peers_.all()) all.push_back(id);
  for (const NodeId& peer : all) OnState(peer);
  KeepTicking();
}

void Together::Look() {
  if (own_.run.plan_or_null() != plan_.get()) LookAtPlan();
  if (!own_.phases.Running()) {
    since_ = absl::InfiniteFuture();
    starting_ = own_.phases.Is(ports::Phase::kJoining);
    // What was true at the end of a run stays told.
    if (!ended_with_.has_value()) alone_.clear();
    return;
  }
  if (since_ != absl::InfiniteFuture()) return;
  // The model that it starts from is no exchange.
  if (std::exchange(starting_, false)) neighbourhood_.BeginRun();
  since_ = loop_.Now();
  seen_ = neighbourhood_.Exchanged();
  alone_.clear();
  ended_with_.reset();
  KeepTicking();
}

absl::Duration Together::Grace() const {
  return std::max(kLeastGrace, 2 * own_.run.plan().deadline.exchange);
}

void Together::KeepTicking() {
  if (timer_ != 0 || !own_.phases.Running() || !neighbourhood_.HasAny()) {
    return;
  }
  const absl::Duration period =
      std::clamp(Grace() / 4, kLeastTick, kLongestTick);
  timer_ = loop_.After(period, [this] {
    timer_ = 0;
    Tick();
    KeepTicking();
  });
}

void Together::Tick() {
  if (!own_.phases.Running() || !neighbourhood_.HasAny()) return;
  neighbourhood_.AskTheSilent(Grace());
  const int64_t exchanged = neighbourhood_.Exchanged();
  if (exchanged != seen_) {
    seen_ = exchanged;
    since_ = loop_.Now();
    last_step_ = own_.algorithm.step();
    SetAlone("");
  } else if (loop_.Now() >= since_ + Grace()) {
    SetAlone(AloneText());
  }
}

std::string Together::AloneText() const {
  std::vector<std::string> reasons;
  size_t named = 0;
  size_t finished = 0;
  const std::vector<NodeId> neighbours = neighbourhood_.Members();
  for (const NodeId& peer : neighbours) {
    if (neighbourhood_.FinishedWithUs(peer)) {
      ++finished;
      continue;
    }
    const std::string why = neighbourhood_.WhyNot(peer);
    if (why.empty()) return "";
    if (++named <= kNamed) {
      reasons.push_back(absl::StrCat(peer.name(), ": ", why));
    }
  }
  if (named == 0) return "";
  if (named > kNamed) {
    reasons.push_back(absl::StrCat("and ", named - kNamed, " more"));
  }
  if (finished > 0) reasons.push_back(absl::StrCat(finished, " have finished"));
  return absl::StrCat(neighbourhood_.Exchanged() == 0
                          ? "no model came from its "
                          : absl::StrCat("no model has come since step ",
                                         last_step_, " from its "),
                      neighbours.size(),
                      neighbours.size() == 1 ? " neighbour" : " neighbours",
                      ", because ", absl::StrJoin(reasons, " / "));
}

void Together::SetAlone(std::string why) {
  const bool was = !alone_.empty();
  alone_ = std::move(why);
  if (was != !alone_.empty()) events_.Report(ports::LearnsAlone{alone_});
}

std::string Together::EndNote() {
  if (!own_.phases.Running()) return "";  // it has never begun
  ended_with_.emplace();
  if (!neighbourhood_.HasAny()) return "";
  for (const NodeId& peer : neighbourhood_.Members()) {
    if (neighbourhood_.ExchangedWith(peer) &&
        (neighbourhood_.FinishedWithUs(peer) ||
         neighbourhood_.WhyNot(peer).empty())) {
      ended_with_->insert(peer);
    }
  }
  if (neighbourhood_.Exchanged() == 0 && alone_.empty()) {
    alone_ = AloneText();
    if (alone_.empty()) {
      alone_ = "it was through before a model came from a neighbour";
    }
  }
  return alone_.empty() ? "" : absl::StrCat("; learned alone: ", alone_);
}

}  // namespace dfl::runtime
