#include "daemon/runtime/joining.h"

#include <algorithm>
#include <utility>

#include "daemon/runtime/patience.h"

namespace dfl::runtime {

using ports::Phase;

namespace {

// How often one neighbour is asked for its model before a node that starts goes
// on without it.
constexpr int64_t kTries = 3;

}  // namespace

Joining::Joining(JoiningOptions options, ports::Loop& loop, Links& links,
                 Transfers& transfers, AskBook& asks, const PeerTable& peers,
                 const RunInForce& run, Listener& listener)
    : options_(options),
      loop_(loop),
      links_(links),
      transfers_(transfers),
      asks_(asks),
      peers_(peers),
      run_(run),
      listener_(listener) {}

Joining::~Joining() {
  if (search_) loop_.Cancel(search_->timer);
  loop_.Cancel(wait_timer_);
}

void Joining::Begin() {
  search_ = Search();
  search_->since = loop_.Now();
}

void Joining::End() {
  if (!search_) return;
  loop_.Cancel(search_->timer);
  if (search_->ask != 0) Withdraw(search_->asked);
  search_.reset();
}

void Joining::Withdraw(const NodeId& peer) {
  asks_.CloseAll(search_->ask);
  transfers_.CancelInbound(peer, search_->ask);
  (void)links_.Send(peer, ports::CancelAskFrame{search_->ask});
}

Joining::Candidates Joining::Look() const {
  const int64_t tries = listener_.Starting() ? kTries : 1;
  const bool may_retry = loop_.Now() >= search_->retry_at;
  const int64_t own = listener_.OwnStep();
  Candidates found;
  int64_t best_step = 0;
  int64_t best_failures = 0;
  for (const auto& [id, peer] : peers_.all()) {
    if (!run_.MayTakePart(id) || !links_.IsUp(id) || !peer.known) continue;
    ++found.heard;
    const int64_t step = peer.state.step;
    if (step <= own || peers_.Mismatch(peer, false)) continue;
    const auto failed = search_->failures.find(id);
    const int64_t failures =
        failed == search_->failures.end() ? 0 : failed->second;
    if (failures >= tries) continue;
    if (failures > 0 && !may_retry) {
      found.retry_later = true;
      continue;
    }
    if (!found.best || failures < best_failures ||
        (failures == best_failures && step > best_step)) {
      found.best = id;
      best_step = step;
      best_failures = failures;
    }
  }
  return found;
}

void Joining::Continue() {
  if (!search_ || search_->ask != 0) return;
  const bool starting = listener_.Starting();
  if (!starting && !listener_.MayReplaceModel()) return;
  const Candidates found = Look();
  if (found.best) {
    Ask(*found.best);
    return;
  }
  if (found.retry_later) {
    ContinueAt(search_->retry_at);
    return;
  }
  if (!starting) {  // was training already, and nobody is ahead any more
    End();
    listener_.OnWaitEnds();
    return;
  }
  // One that knows nobody yet may not have found the others.
  const int64_t others = run_.node().member_count - 1;
  const bool all_heard =
      found.heard >= others && !(run_.follows_view() && others < 1);
  const absl::Time until = search_->since + options_.within;
  if (all_heard || loop_.Now() >= until) {
    listener_.OnNobodyToJoin();
  } else {
    ContinueAt(until);
  }
}

void Joining::ContinueAt(absl::Time when) {
  loop_.Cancel(search_->timer);
  search_->timer = loop_.After(when - loop_.Now(), [this] {
    search_->timer = 0;
    Continue();
  });
}

void Joining::Ask(const NodeId& peer) {
  const uint64_t ask = asks_.OpenStateAsk(peer);
  search_->ask = ask;
  search_->asked = peer;
  Watch(ask);
  if (!links_.Send(peer, ports::AskFrame{ask, ports::AskPurpose::kState, 0})
           .ok()) {
    Failed(peer);
  }
}

void Joining::Watch(uint64_t ask) {
  loop_.Cancel(search_->timer);
  search_->timer = loop_.After(options_.stall, [this, ask] {
    search_->timer = 0;
    if (search_->ask != ask) return;
    const NodeId asked = search_->asked;
    if (transfers_.InboundMoved(asked, ask, options_.stall)) {
      Watch(ask);
    } else {
      Failed(asked);
    }
  });
}

void Joining::Failed(const NodeId& peer) {
  if (!search_ || search_->ask == 0) return;
  Withdraw(peer);
  search_->ask = 0;
  loop_.Cancel(search_->timer);
  ++search_->failures[peer];
  search_->retry_at = loop_.Now() + options_.retry;
  // Not from inside a transport's or a transfer's call.
  loop_.Post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) Continue();
  });
}

void Joining::Taken() {
  search_->ask = 0;
  End();
}

// ------------------------------------------------------------ after a start --

void Joining::NoteStart(bool joined) {
  joined_ = joined;
  if (!joined) heard_since_start_.clear();
  for (const auto& [id, peer] : peers_.all()) {
    if (run_.MayTakePart(id) && !peers_.Mismatch(peer, false)) {
      heard_since_start_.insert(id);
    }
  }
  UpdateUnconfirmed();
}

void Joining::UpdateUnconfirmed() {
  // Where members follow who is there, there may always be another.
  unconfirmed_ =
      run_.follows_view() || static_cast<int64_t>(heard_since_start_.size()) <
                                 run_.node().member_count - 1;
}

void Joining::Confirm(const NodeId& peer, int64_t step) {
  if (!unconfirmed_ || !run_.MayTakePart(peer) ||
      peers_.Mismatch(peer, false) || !heard_since_start_.insert(peer).second) {
    return;
  }
  UpdateUnconfirmed();
  // Of those that are in step with the neighbour it joined it needs nothing.
  const int64_t own = listener_.OwnStep();
  if (!search_ && step > (joined_ ? 2 * own : own)) search_ = Search();
}

void Joining::WaitForOthers(absl::Duration deadline) {
  loop_.Cancel(std::exchange(wait_timer_, 0));
  wait_until_ = loop_.Now() + PatienceWith(run_, links_, deadline);
  waits_at_ = listener_.OwnStep();
}

void Joining::WaitForNobody() {
  loop_.Cancel(std::exchange(wait_timer_, 0));
  wait_until_ = absl::InfinitePast();
}

bool Joining::OthersAreAboutToTrain() const {
  return std::any_of(
      peers_.all().begin(), peers_.all().end(), [this](const auto& entry) {
        const auto& [id, peer] = entry;
        const Phase phase = peer.state.phase;
        return peer.known && links_.IsUp(id) && run_.MayPush(id) &&
               !peers_.Mismatch(peer, true) &&
               (phase == Phase::kIdle || phase == Phase::kJoining);
      });
}

bool Joining::AwaitsOthers() {
  if (!waits_for_others()) return false;
  loop_.Cancel(std::exchange(wait_timer_, 0));
  const bool waits = run_.lock_step() && listener_.OwnStep() == waits_at_ &&
                     loop_.Now() < wait_until_ && OthersAreAboutToTrain();
  if (!waits) {
    wait_until_ = absl::InfinitePast();
    return false;
  }
  wait_timer_ = loop_.After(wait_until_ - loop_.Now(), [this] {
    wait_timer_ = 0;
    listener_.OnWaitEnds();
  });
  return true;
}

}  // namespace dfl::runtime
