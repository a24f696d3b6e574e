// Joining: a node that starts takes model and step from the neighbour that is
// furthest, and starts fresh only when nobody is ahead.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/runtime/node.h"

namespace dfl::runtime {

using ports::Phase;

void Node::BeginJoin() {
  join_ = Join();
  join_->since = loop_.Now();
  SetPhase(Phase::kJoining, "looking for a neighbour to start from");
  join_->timer = loop_.After(options_.join_within, [this] {
    join_->timer = 0;
    ContinueJoin();
  });
  ContinueJoin();
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

void Node::ContinueJoin() {
  if (!join_ || join_->ask != 0) return;
  if (phase_ != Phase::kJoining && !at_boundary_) return;
  const int64_t own = algorithm_ ? algorithm_->step() : 0;
  const NodeId* best = nullptr;
  int64_t best_step = own;
  int64_t heard = 0;
  for (const auto& [peer, state] : peers_) {
    if (!links_.IsUp(peer) || !state.known) continue;
    ++heard;
    if (join_->tried.count(peer) > 0 || Mismatch(peer, false)) continue;
    if (state.state.step > best_step) {
      best = &peer;
      best_step = state.state.step;
    }
  }
  if (best != nullptr) {
    AskForState(*best);
    return;
  }
  if (phase_ != Phase::kJoining) {  // was training already: nobody is ahead
    EndJoin();
    unconfirmed_start_ = false;
    ScheduleBoundary();
    return;
  }
  const bool all_heard = heard >= node_plan_.member_count - 1;
  if (all_heard || loop_.Now() >= join_->since + options_.join_within) {
    unconfirmed_start_ = !all_heard;
    StartFresh();
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
  join_->ask = 0;
  join_->tried.insert(peer);
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
  initialised_ = true;
  ++generation_;
  RestartAlgorithm(0);
  BeginTraining("started fresh");
}

void Node::BeginTraining(const std::string& reason) {
  wanted_ = Phase::kIdle;
  SetPhase(Phase::kTraining, reason);
  for (auto& [peer, state] : peers_) RefreshActive(peer);
  ScheduleBoundary();
}

void Node::TakeState(const NodeId& from, int64_t step,
                     const codec::DecodedMessage& message) {
  if (!message.CopyDense(absl::MakeSpan(parameters_)).ok()) {
    JoinFailed(from);
    return;
  }
  std::copy(message.buffers().begin(), message.buffers().end(),
            buffers_.begin());
  join_->ask = 0;
  EndJoin();
  unconfirmed_start_ = false;
  initialised_ = true;
  ++generation_;
  RestartAlgorithm(step);
  events_.Report(ports::StateTaken{from, step});
  BeginTraining(absl::StrCat("joined at step ", step, " of ", from.name()));
}

}  // namespace dfl::runtime
