#include "daemon/runtime/guards/silence.h"

#include <algorithm>

namespace dfl::runtime {

void Silence::Expect(const NodeId& peer) {
  const auto [it, added] = entries_.try_emplace(peer);
  if (!added) return;
  it->second.due = loop_.Now() + deadline_();
  Watch(it->second.due);
}

void Silence::Missed(const NodeId& peer) {
  Entry& entry = entries_[peer];
  entry.missed = true;
  if (entry.stage != Stage::kOwing) return;
  Ask(peer, entry, Stage::kAsked);
  Watch(entry.due);
}

void Silence::Heard(const NodeId& peer) {
  const auto it = entries_.find(peer);
  if (it == entries_.end()) return;
  const bool was_silent = it->second.stage == Stage::kSilent;
  entries_.erase(it);
  if (was_silent) listener_.OnHeard(peer);
}

absl::Duration Silence::ProbeEvery() const {
  return std::min(kProbe, deadline_() / 2);
}

void Silence::Ask(const NodeId& peer, Entry& entry, Stage stage) {
  entry.stage = stage;
  entry.due = loop_.Now() + ProbeEvery();
  listener_.Probe(peer);
}

void Silence::Watch(absl::Time due) {
  if (due >= timer_at_) return;
  loop_.Cancel(timer_);
  timer_at_ = due;
  timer_ =
      loop_.After(std::max(due - loop_.Now(), absl::Milliseconds(1)), [this] {
        timer_ = 0;
        timer_at_ = absl::InfiniteFuture();
        OnTimer();
      });
}

void Silence::OnTimer() {
  const absl::Time now = loop_.Now();
  for (auto& [peer, entry] : entries_) {
    if (entry.due > now) continue;
    const Stage before = entry.stage;
    Ask(peer, entry, before == Stage::kOwing ? Stage::kAsked : Stage::kSilent);
    if (before == Stage::kAsked) listener_.OnSilent(peer, !entry.missed);
  }
  absl::Time first = absl::InfiniteFuture();
  for (const auto& [peer, entry] : entries_) {
    first = std::min(first, entry.due);
  }
  Watch(first);
}

}  // namespace dfl::runtime
