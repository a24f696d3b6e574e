#include "daemon/runtime/guards/silence.h"

#include <algorithm>

namespace dfl::runtime {

void Silence::Expect(const NodeId& peer) {
  Entry& entry = entries_[peer];
  if (entry.silent || entry.at != absl::InfiniteFuture()) return;
  entry.at = loop_.Now();
  Watch();
}

void Silence::Missed(const NodeId& peer) {
  Entry& entry = entries_[peer];
  if (!entry.silent) Silent(peer, entry, /*unanswered=*/false);
  Watch();
}

void Silence::Heard(const NodeId& peer) {
  const auto it = entries_.find(peer);
  if (it == entries_.end()) return;
  it->second.at = absl::InfiniteFuture();
  if (!it->second.silent) return;
  it->second.silent = false;
  listener_.OnHeard(peer);
}

absl::Duration Silence::ProbeEvery() const {
  return std::min(kProbe, deadline_() / 2);
}

void Silence::Silent(const NodeId& peer, Entry& entry, bool unanswered) {
  entry.silent = true;
  entry.at = loop_.Now() + ProbeEvery();
  listener_.OnSilent(peer, unanswered);
  listener_.Probe(peer);
}

absl::Time Silence::Due(const Entry& entry) const {
  return entry.silent ? entry.at : entry.at + deadline_();
}

void Silence::Watch() {
  if (timer_ != 0) return;
  absl::Time first = absl::InfiniteFuture();
  for (const auto& [peer, entry] : entries_) {
    first = std::min(first, Due(entry));
  }
  if (first == absl::InfiniteFuture()) return;
  timer_ =
      loop_.After(std::max(first - loop_.Now(), absl::Milliseconds(1)), [this] {
        timer_ = 0;
        OnTimer();
      });
}

void Silence::OnTimer() {
  const absl::Time now = loop_.Now();
  for (auto& [peer, entry] : entries_) {
    if (Due(entry) > now) continue;
    if (entry.silent) {
      entry.at = now + ProbeEvery();
      listener_.Probe(peer);
    } else {
      Silent(peer, entry, /*unanswered=*/true);
    }
  }
  Watch();
}

}  // namespace dfl::runtime
