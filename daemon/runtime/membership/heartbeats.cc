#include "daemon/runtime/membership/heartbeats.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace dfl::runtime {

namespace {

constexpr absl::Duration kShortest = absl::Milliseconds(100);

}  // namespace

absl::Duration HeartbeatOf(ports::Pace pace) {
  switch (pace) {
    case ports::Pace::kLan:
      return absl::Seconds(5);
    case ports::Pace::kWan:
      return absl::Seconds(15);
    case ports::Pace::kCellular:
      break;
  }
  return absl::Seconds(60);
}

Heartbeats::Heartbeats(NodeId self, ports::Loop& loop, Links& links,
                       std::function<absl::Duration(const NodeId&)> beat_of)
    : self_(std::move(self)),
      loop_(loop),
      links_(links),
      beat_of_(std::move(beat_of)) {}

void Heartbeats::OnPeerUp() {
  if (timer_ == 0) Wake(HeartbeatOf(ports::Pace::kLan));
}

void Heartbeats::Wake(absl::Duration delay) {
  timer_ = loop_.After(std::max(delay, kShortest), [this] {
    timer_ = 0;
    Look();
  });
}

void Heartbeats::Look() {
  absl::Duration next = absl::InfiniteDuration();
  std::vector<NodeId> silent;  // closing a link changes the list of peers
  std::map<NodeId, Beat> beats;
  beats.swap(beats_);
  for (const auto& [node, peer] : links_.peers()) {
    if (peer.link == 0) continue;
    const absl::Duration beat = beat_of_(node);
    if (beat <= absl::ZeroDuration()) {
      // It may become a member.
      next = std::min(next, HeartbeatOf(ports::Pace::kLan));
      continue;
    }
    const auto before = beats.find(node);
    if (before != beats.end() && before->second.link == peer.link &&
        loop_.Now() - peer.heard >= beat) {
      beats_.insert(*before);
    }
    const absl::Duration again = LookAt(node, peer, beat);
    if (again <= absl::ZeroDuration()) {
      silent.push_back(node);
    } else {
      next = std::min(next, again);
    }
  }
  for (const NodeId& node : silent) {
    beats_.erase(node);
    links_.Drop(node, absl::UnavailableError(
                          absl::StrCat(node.name(),
                                       " has been silent for three heartbeats "
                                       "and has answered no probe")));
  }
  if (next < absl::InfiniteDuration()) Wake(next);
}

absl::Duration Heartbeats::LookAt(const NodeId& node, const Links::Peer& peer,
                                  absl::Duration beat) {
  const absl::Duration silence = loop_.Now() - peer.heard;
  if (silence < beat) return beat - silence;
  Beat& entry = beats_[node];
  entry.link = peer.link;
  // A node that did not run itself has not asked, and gives nobody up: one
  // probe a look.
  if (entry.probes == kProbes) {
    const absl::Duration left = kProbes * beat - silence;
    return std::max(left, absl::ZeroDuration());
  }
  SendProbe(node);
  ++entry.probes;
  return 2 * beat / kProbes;
}

void Heartbeats::SendProbe(const NodeId& node) {
  ports::ProbeFrame probe;
  probe.route = {.origin = self_, .target = node};
  probe.number = ++last_number_ | kNumberBit;
  (void)links_.Send(node, std::move(probe));
}

}  // namespace dfl::runtime
