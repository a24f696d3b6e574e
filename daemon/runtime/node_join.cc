// Joining: a node that starts takes model and step from the neighbour that is
// furthest, and starts fresh only when nobody is ahead.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/runtime/node.h"

namespace dfl::runtime {

using ports::Phase;

namespace {

// How often one neighbour is asked for its model before a node that starts goes
// on without it.
constexpr int64_t kJoinTries = 3;

}  // namespace

void Node::BeginJoin() {
  join_ = Join();
  join_->since = loop_.Now();
  SetPhase(Phase::kJoining, "looking for a neighbour to start from");
  ContinueJoin();
}

void Node::ContinueJoinAt(absl::Time when) {
  loop_.Cancel(join_->timer);
  join_->timer = loop_.After(when - loop_.Now(), [this] {
    join_->timer = 0;
    ContinueJoin();
  });
}

void Node::EndJoin() {
  if (!join_) return;
  loop_.Cancel(join_->timer);
  if (join_->ask != 0) {
    asks_.erase(join_->ask);
    transfers_.CancelInbound(join_->asked, join_->ask);
    (void)links_.Send(join_->asked, ports::CancelAskFrame{join_->ask});
  }
  join_.reset();
}

// Asks the furthest neighbour that is ahead of us; those that gave nothing are
// asked again, after the others and a few times at most.
void Node::ContinueJoin() {
  if (!join_ || join_->ask != 0) return;
  const bool joining = phase_ == Phase::kJoining;
  if (!joining && !(Running() && at_boundary_)) return;
  const int64_t tries = joining ? kJoinTries : 1;
  const bool may_retry = loop_.Now() >= join_->retry_at;
  const int64_t own = algorithm_ ? algorithm_->step() : 0;
  const NodeId* best = nullptr;
  int64_t best_step = 0;
  int64_t best_failures = 0;
  bool retry_later = false;
  int64_t heard = 0;
  for (const auto& [peer, state] : peers_) {
    if (!links_.IsUp(peer) || !state.known) continue;
    ++heard;
    const int64_t step = state.state.step;
    if (step <= own || Mismatch(state, false)) continue;
    const auto found = join_->failures.find(peer);
    const int64_t failures = found == join_->failures.end() ? 0 : found->second;
    if (failures >= tries) continue;
    if (failures > 0 && !may_retry) {
      retry_later = true;
      continue;
    }
    if (best == nullptr || failures < best_failures ||
        (failures == best_failures && step > best_step)) {
      best = &peer;
      best_step = step;
      best_failures = failures;
    }
  }
  if (best != nullptr) {
    AskForState(*best);
    return;
  }
  if (retry_later) {
    ContinueJoinAt(join_->retry_at);
    return;
  }
  if (!joining) {  // was training already, and nobody is ahead any more
    EndJoin();
    ScheduleBoundary();
    return;
  }
  const bool all_heard = heard >= node_plan_.member_count - 1;
  const absl::Time until = join_->since + options_.join_within;
  if (all_heard || loop_.Now() >= until) {
    StartFresh();
  } else {
    ContinueJoinAt(until);
  }
}

void Node::AskForState(const NodeId& peer) {
  join_->ask = ++last_state_ask_;
  join_->asked = peer;
  asks_[join_->ask] = {peer};
  const uint64_t ask = join_->ask;
  WatchJoin(ask);
  if (!links_.Send(peer, ports::AskFrame{ask, ports::AskPurpose::kState, 0})
           .ok()) {
    JoinFailed(peer);
  }
}

// A model may take long, but must keep moving.
void Node::WatchJoin(uint64_t ask) {
  loop_.Cancel(join_->timer);
  join_->timer = loop_.After(options_.join_stall, [this, ask] {
    join_->timer = 0;
    if (join_->ask != ask) return;
    if (transfers_.InboundMoved(join_->asked, ask, options_.join_stall)) {
      WatchJoin(ask);
    } else {
      JoinFailed(join_->asked);
    }
  });
}

void Node::JoinFailed(NodeId peer) {
  if (!join_ || join_->ask == 0) return;
  asks_.erase(join_->ask);
  transfers_.CancelInbound(peer, join_->ask);
  (void)links_.Send(peer, ports::CancelAskFrame{join_->ask});
  join_->ask = 0;
  loop_.Cancel(join_->timer);
  ++join_->failures[peer];
  join_->retry_at = loop_.Now() + options_.join_retry;
  // Not from inside a transport's or a transfer's call.
  loop_.Post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) ContinueJoin();
  });
}

void Node::StartFresh() {
  EndJoin();
  const absl::Status made =
      trainer_->Initialise(DeriveSeed(plan_->seed, "model"));
  if (!made.ok()) {
    last_error_ = std::string(made.message());
    events_.Report(ports::LearnerFailed{0, made});
    SetPhase(Phase::kStopped, last_error_);
    return;
  }
  CopyFromLearner();
  initialised_ = true;
  ++generation_;
  RestartAlgorithm(0);
  joined_ = false;
  heard_since_start_.clear();
  NoteHeard();
  start_until_ = loop_.Now() + plan_->deadline.exchange;
  BeginTraining("started fresh");
}

void Node::NoteHeard() {
  for (const auto& [peer, state] : peers_) {
    if (!Mismatch(state, false)) heard_since_start_.insert(peer);
  }
  unconfirmed_start_ = static_cast<int64_t>(heard_since_start_.size()) <
                       node_plan_.member_count - 1;
}

// A run begins together: before the first round a node waits, for one deadline
// at most, for neighbours that are in the run and do not train yet. Otherwise
// those that begin first would be through it without the others, whose gradients
// are then missing in what trackers must keep.
bool Node::AwaitsStart() {
  if (start_until_ == absl::InfinitePast()) return false;
  loop_.Cancel(std::exchange(start_timer_, 0));
  auto info = core::FindAlgorithm(plan_->algorithm.name);
  const bool waits =
      info.ok() && (*info)->lock_step && algorithm_->step() == 0 &&
      loop_.Now() < start_until_ &&
      std::any_of(
          peers_.begin(), peers_.end(),
          [this](const auto& entry) {
            const auto& [peer, state] = entry;
            const Phase phase = state.state.phase;
            return state.known && links_.IsUp(peer) && MayPush(peer) &&
                   !Mismatch(state, true) &&
                   (phase == Phase::kIdle || phase == Phase::kJoining);
          });
  if (!waits) {
    start_until_ = absl::InfinitePast();
    return false;
  }
  start_timer_ = loop_.After(start_until_ - loop_.Now(), [this] {
    start_timer_ = 0;
    ScheduleBoundary();
  });
  return true;
}

void Node::BeginTraining(const std::string& reason) {
  wanted_ = Phase::kIdle;
  SetPhase(Phase::kTraining, reason);
  for (auto& [peer, state] : peers_) RefreshActive(peer);
  ScheduleBoundary();
}

void Node::TakeState(const NodeId& from, int64_t step,
                     const codec::DecodedMessage& message) {
  const absl::Status copied = message.CopyDense(absl::MakeSpan(parameters_));
  if (!copied.ok()) {
    OnBadMessage(from, ports::RefuseReason::kBadMessage,
                 std::string(copied.message()));
    JoinFailed(from);
    return;
  }
  std::copy(message.buffers().begin(), message.buffers().end(),
            buffers_.begin());
  join_->ask = 0;
  EndJoin();
  initialised_ = true;
  ++generation_;
  RestartAlgorithm(step);
  // The giver itself may have started fresh, alone.
  joined_ = true;
  NoteHeard();
  events_.Report(ports::StateTaken{from, step});
  BeginTraining(absl::StrCat("joined at step ", step, " of ", from.name()));
}

}  // namespace dfl::runtime
