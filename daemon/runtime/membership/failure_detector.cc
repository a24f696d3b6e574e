#include "daemon/runtime/membership/failure_detector.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"

namespace dfl::runtime {

using ports::MemberState;
using ports::ProbeFrame;

FailureDetector::FailureDetector(const NodeId& self, uint64_t seed,
                                 ports::Loop& loop, ProbePaths& paths,
                                 const MemberTable& table, Judge& judge)
    : self_(self),
      loop_(loop),
      paths_(paths),
      table_(table),
      judge_(judge),
      rng_(DeriveSeed(DeriveSeed(seed, "failure detector"), self.name())) {
  // Nodes that start together do not probe together.
  next_period_ = loop_.Now() + OwnPreset().period * rng_.Uniform();
  Schedule();
}

void FailureDetector::Stop() {
  stopped_ = true;
  loop_.Cancel(std::exchange(timer_, 0));
  probes_.clear();
  suspicions_ = Suspicions();
}

const Preset& FailureDetector::OwnPreset() const {
  return PresetOf(table_.members().at(self_).facts.pace);
}

const Preset& FailureDetector::PresetFor(const NodeId& node) const {
  const ports::Pace own = table_.members().at(self_).facts.pace;
  const Member* member = table_.Find(node);
  return PresetOf(member == nullptr ? own
                                    : MorePatient(own, member->facts.pace));
}

absl::Duration FailureDetector::LateFrom() const {
  return OwnPreset().probe_timeout / 4;
}

// Time.

void FailureDetector::Schedule() {
  if (stopped_) return;
  absl::Time due = std::min(next_period_, suspicions_.Next());
  for (const auto& [number, probe] : probes_) {
    due = std::min(due, probe.deadline);
  }
  if (timer_ != 0 && due == timer_due_) return;
  loop_.Cancel(timer_);
  timer_due_ = due;
  timer_ = loop_.After(due - loop_.Now(), [this, due] { Wake(due); });
}

void FailureDetector::Wake(absl::Time due) {
  timer_ = 0;
  const absl::Time now = loop_.Now();
  const absl::Duration lag = now - due;
  const bool late = lag > LateFrom();
  if (late) health_.Worse();
  // To one that is always as late its frames are, too; it goes on.
  const bool surprised = late && lag > 2 * usual_lag_;
  usual_lag_ = (3 * usual_lag_ + std::min(lag, OwnPreset().period)) / 4;
  if (surprised) {
    MakeUpFor(lag);
  } else {
    ProbesOver(now);
    for (const NodeId& node : suspicions_.TakeOver(now)) {
      judge_.OnSuspicionOver(node);
    }
  }
  // The judge may have stopped it.
  if (!stopped_ && now >= next_period_) {
    next_period_ = now + OwnPreset().period * health_.patience();
    Period();
  }
  Schedule();
}

// What has come meanwhile is still to be read, which may take as long again.
void FailureDetector::MakeUpFor(absl::Duration lag) {
  const absl::Time least = loop_.Now() + std::min(lag, OwnPreset().suspicion);
  for (auto& [number, probe] : probes_) {
    probe.deadline = std::max(probe.deadline + lag, least);
    probe.sent = absl::InfinitePast();  // it tells nothing of the link
  }
  suspicions_.Prolong(lag, least);
}

void FailureDetector::Period() {
  if (const NodeId target = NextTarget(); !target.empty()) ProbeLinked(target);
  if (++periods_ % kPeriodsToFarProbe == 0) {
    if (const NodeId far = FarTarget(); !far.empty()) ProbeFar(far);
  }
  judge_.OnPeriod();
}

NodeId FailureDetector::NextTarget() {
  for (int refills = 0; refills < 2; ++refills) {
    while (!turn_.empty()) {
      NodeId target = std::move(turn_.back());
      turn_.pop_back();
      if (linked_.count(target) > 0 && table_.IsPresent(target) &&
          !IsProbed(target)) {
        return target;
      }
    }
    turn_.assign(linked_.begin(), linked_.end());
    rng_.Shuffle(absl::MakeSpan(turn_));
  }
  return NodeId();
}

NodeId FailureDetector::FarTarget() {
  std::vector<NodeId> far = paths_.Partners();
  std::erase_if(far, [this](const NodeId& node) {
    return linked_.count(node) > 0 || !table_.IsPresent(node) || IsProbed(node);
  });
  return far.empty() ? NodeId() : far[rng_.Below(far.size())];
}

// Probes.

ProbeFrame FailureDetector::FrameOf(uint64_t number,
                                    const NodeId& target) const {
  ProbeFrame frame;
  frame.route = {.origin = self_, .target = target};
  frame.number = number;
  frame.digest = table_.digest();
  return frame;
}

bool FailureDetector::IsProbed(const NodeId& node) const {
  return std::any_of(probes_.begin(), probes_.end(), [&](const auto& entry) {
    return entry.second.target == node;
  });
}

void FailureDetector::ProbeLinked(const NodeId& target) {
  const uint64_t number = ++last_number_;
  if (!paths_.SendVia(target, FrameOf(number, target)).ok()) return;
  Probe& probe = probes_[number];
  probe.target = target;
  probe.sent = loop_.Now();
  const absl::Duration usual = PresetFor(target).probe_timeout;
  probe.deadline =
      loop_.Now() +
      paths_.AnswerDeadline(target, {.usual = usual,
                                     .floor = usual / kProbeFloorShare,
                                     .ceiling = kProbeCeiling * usual}) *
          health_.patience();
}

// Its way is longer: it has twice the time.
void FailureDetector::ProbeFar(const NodeId& target) {
  const uint64_t number = ++last_number_;
  if (!paths_.Send(FrameOf(number, target)).ok()) return;
  Probe& probe = probes_[number];
  probe.target = target;
  probe.deadline =
      loop_.Now() + 2 * PresetFor(target).probe_timeout * health_.patience();
}

void FailureDetector::AskOthers(uint64_t number, Probe& probe) {
  std::vector<NodeId> others;
  for (const NodeId& peer : linked_) {
    const Member* member = table_.Find(peer);
    if (peer != probe.target && member != nullptr &&
        member->state == MemberState::kAlive) {
      others.push_back(peer);
    }
  }
  rng_.Shuffle(absl::MakeSpan(others));
  probe.indirect = true;
  for (const NodeId& peer : others) {
    if (probe.asked == kIndirectProbes) break;
    if (paths_.SendVia(peer, FrameOf(number, probe.target)).ok()) ++probe.asked;
  }
  probe.deadline = loop_.Now() + PresetFor(probe.target).indirect_timeout *
                                     health_.patience();
}

void FailureDetector::DropProbesOf(const NodeId& node) {
  for (auto it = probes_.begin(); it != probes_.end();) {
    it = it->second.target == node ? probes_.erase(it) : std::next(it);
  }
}

void FailureDetector::ProbesOver(absl::Time now) {
  std::vector<NodeId> silent;
  for (auto it = probes_.begin(); it != probes_.end();) {
    Probe& probe = it->second;
    if (probe.deadline > now) {
      ++it;
    } else if (!probe.indirect) {
      if (probe.sent > absl::InfinitePast()) {
        paths_.NoteNoAnswer(probe.target, probe.deadline - probe.sent);
      }
      AskOthers(it->first, probe);
      ++it;
    } else {
      if (probe.receipts < probe.asked) health_.Worse();
      silent.push_back(probe.target);
      it = probes_.erase(it);
    }
  }
  for (const NodeId& node : silent) judge_.OnNoAnswer(node);
}

bool FailureDetector::OnAck(const ports::ProbeAckFrame& frame) {
  const auto found = probes_.find(frame.number);
  if (found == probes_.end()) return false;
  Probe& probe = found->second;
  if (frame.receipt) {
    ++probe.receipts;
    return true;
  }
  if (frame.route.origin != probe.target) return false;
  if (!probe.indirect) {
    if (usual_lag_ <= LateFrom()) health_.Better();
    if (frame.route.hops == 0 && probe.sent > absl::InfinitePast()) {
      paths_.NoteAnswer(probe.target, loop_.Now() - probe.sent);
    }
  }
  probes_.erase(found);
  Schedule();
  return true;
}

// Links and members.

void FailureDetector::OnPeerUp(const NodeId& peer) {
  linked_.insert(peer);
  DropProbesOf(peer);  // it has just spoken
  Schedule();
}

void FailureDetector::OnPeerDown(const NodeId& peer) {
  if (linked_.erase(peer) == 0 || stopped_ || !table_.IsPresent(peer)) return;
  bool under_way = false;
  for (auto& [number, probe] : probes_) {
    if (probe.target != peer) continue;
    under_way = true;
    if (!probe.indirect) AskOthers(number, probe);
  }
  if (!under_way) {
    const uint64_t number = ++last_number_;
    Probe& probe = probes_[number];
    probe.target = peer;
    AskOthers(number, probe);
  }
  Schedule();
}

void FailureDetector::OnMember(const NodeId& node) {
  if (stopped_ || node == self_) return;
  const Member* member = table_.Find(node);
  if (member == nullptr || !member->present()) {
    DropProbesOf(node);
    suspicions_.End(node);
  } else if (member->state == MemberState::kAlive) {
    suspicions_.End(node);
  } else {
    Confirm(node, member->by);
    if (member->by != self_ && linked_.count(node) > 0 && !IsProbed(node)) {
      ProbeLinked(node);
    }
  }
  Schedule();
}

bool FailureDetector::Confirm(const NodeId& node, const NodeId& by) {
  const Member* member = table_.Find(node);
  if (stopped_ || member == nullptr) return false;
  const absl::Duration least =
      LeastSuspicion(PresetFor(node), table_.present()) * health_.patience();
  const bool news =
      suspicions_.Add(node, member->incarnation, by, least, loop_.Now());
  Schedule();
  return news;
}

}  // namespace dfl::runtime
