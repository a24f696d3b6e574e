#include "daemon/runtime/gossip/record_pulls.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"

namespace dfl::runtime {
namespace {

constexpr int64_t kPart = ports::kMaxRecordPartBytes;
constexpr int64_t kAhead = 4 * kPart;  // asked for and not come
constexpr int64_t kLeastBytesPerSecond = 64 << 10;
constexpr absl::Duration kSilence = absl::Seconds(10);
constexpr absl::Duration kSecondCopyAfter = absl::Seconds(5);
constexpr int kMaxCopies = 2;
constexpr absl::Duration kFirstPause = absl::Seconds(1);
constexpr absl::Duration kLongestPause = absl::Minutes(10);
constexpr int64_t kMaxDoublings = 10;
constexpr size_t kMaxSettled = 64;
// With those that are remembered after their link is gone.
constexpr size_t kMaxPeers = 1024;
constexpr absl::Duration kTick = absl::Seconds(1);

}  // namespace

RecordPulls::RecordPulls(ports::Loop& loop, Links& links,
                         std::function<bool(const ports::RecordId&)> wanted)
    : loop_(loop), links_(links), wanted_(std::move(wanted)) {}

RecordPulls::~RecordPulls() { loop_.Cancel(timer_); }

RecordPulls::Peer& RecordPulls::PeerOf(const NodeId& peer) {
  const auto found = peers_.find(peer);
  if (found != peers_.end()) return found->second;
  if (peers_.size() >= kMaxPeers) {
    const auto gone = std::find_if(peers_.begin(), peers_.end(),
                                   [](const auto& p) { return !p.second.up; });
    if (gone != peers_.end()) peers_.erase(gone);
  }
  return peers_[peer];
}

void RecordPulls::OnPeerUp(const NodeId& peer) {
  Peer& p = PeerOf(peer);
  p.up = true;
  p.offers.clear();
  End(p);
}

void RecordPulls::OnPeerDown(const NodeId& peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  Peer& p = found->second;
  p.up = false;
  p.offers.clear();
  End(p);
  // What it did in vain is remembered over its next link.
  if (p.strikes == 0 && p.settled.empty()) peers_.erase(found);
  StartAll();
}

bool RecordPulls::Offered(const NodeId& peer,
                          std::vector<ports::RecordId> records) {
  Peer& p = PeerOf(peer);
  bool all = true;
  for (ports::RecordId& id : records) {
    if (!wanted_(id)) continue;
    if (p.offers.size() >= kMaxOffers) {
      all = false;
      break;
    }
    p.offers.insert_or_assign(KeyOf(id), std::move(id));
  }
  Start(peer, p);
  KeepTicking();
  return all;
}

void RecordPulls::StartAll() {
  // Those that cost the least so far come first, or a few silent ones would
  // hold all places in turn.
  std::vector<std::pair<const NodeId, Peer>*> waiting;
  for (auto& entry : peers_) {
    if (MayStart(entry.second)) waiting.push_back(&entry);
  }
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const auto* a, const auto* b) {
                     return a->second.strikes < b->second.strikes;
                   });
  for (auto* entry : waiting) Start(entry->first, entry->second);
}

bool RecordPulls::MayStart(const Peer& peer) const {
  return peer.up && !peer.pull.has_value() && !peer.offers.empty() &&
         under_way_ < kMaxPulls && loop_.Now() >= peer.not_before;
}

void RecordPulls::Start(const NodeId& id, Peer& peer) {
  if (!MayStart(peer)) return;
  std::optional<ports::RecordId> record = Choose(peer);
  if (!record.has_value()) return;
  Pull pull;
  pull.id = *std::move(record);
  pull.since = pull.heard = loop_.Now();
  peer.pull = std::move(pull);
  ++under_way_;
  AskOn(id, *peer.pull);
}

std::optional<ports::RecordId> RecordPulls::Choose(Peer& peer) {
  for (auto offer = peer.offers.begin(); offer != peer.offers.end();) {
    const ports::RecordId& id = offer->second;
    if (!wanted_(id)) {
      offer = peer.offers.erase(offer);
      continue;
    }
    const bool settled = std::find(peer.settled.begin(), peer.settled.end(),
                                   id.hash) != peer.settled.end();
    if (!settled && MayPull(id)) return id;
    ++offer;
  }
  return std::nullopt;
}

bool RecordPulls::MayPull(const ports::RecordId& id) const {
  int copies = 0;
  for (const auto& [other, peer] : peers_) {
    if (!peer.pull.has_value() || !(peer.pull->id == id)) continue;
    if (loop_.Now() - peer.pull->since < kSecondCopyAfter) return false;
    ++copies;
  }
  return copies < kMaxCopies;
}

void RecordPulls::AskOn(const NodeId& id, Pull& pull) {
  const auto come = static_cast<int64_t>(pull.bytes.size());
  // The first part says how many there are.
  const int64_t end = pull.total == 0 ? 1 : std::min(pull.total, come + kAhead);
  while (pull.asked < end) {
    ports::RecordWant want;
    want.record = pull.id;
    want.offset = pull.asked;
    pull.asked += kPart;
    // Where it fails the link is about to go, or the peer is given up in time.
    (void)links_.Send(id, std::move(want));
  }
}

absl::Status RecordPulls::CheckPart(const Pull& pull,
                                    const ports::RecordPart& part) {
  const auto come = static_cast<int64_t>(pull.bytes.size());
  if (pull.total != 0 && part.total_bytes != pull.total) {
    return absl::InvalidArgumentError(
        absl::StrCat("a record of ", pull.total, " bytes has ",
                     part.total_bytes, " bytes in a later part"));
  }
  if (part.offset != come || come >= pull.asked) {
    return absl::InvalidArgumentError(
        absl::StrCat("a part of a record begins at ", part.offset,
                     "; the next one was to begin at ", come));
  }
  const int64_t expected = std::min(kPart, part.total_bytes - part.offset);
  if (static_cast<int64_t>(part.data.size()) != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat("a part of a record has ", part.data.size(),
                     " bytes; it must have ", expected));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RecordPulls::Whole>> RecordPulls::OnPart(
    const NodeId& peer, ports::RecordPart part) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return std::nullopt;
  Peer& p = found->second;
  // It may come after the peer was given up.
  if (!p.pull.has_value() || !(p.pull->id == part.record)) return std::nullopt;
  Pull& pull = *p.pull;
  if (part.total_bytes == 0) {
    p.offers.erase(KeyOf(pull.id));
    End(p);
    StartAll();
    return std::nullopt;
  }
  const absl::Status fits = CheckPart(pull, part);
  if (!fits.ok()) {
    Refused(peer, ports::RecordId(pull.id));
    return fits;
  }
  pull.total = part.total_bytes;
  pull.heard = loop_.Now();
  pull.bytes += part.data;
  if (static_cast<int64_t>(pull.bytes.size()) < pull.total) {
    AskOn(peer, pull);
    return std::nullopt;
  }
  Whole whole{std::move(pull.id), std::move(pull.bytes)};
  End(p);
  return whole;
}

void RecordPulls::Taken(const NodeId& peer) {
  PeerOf(peer).strikes = 0;
  StartAll();
}

void RecordPulls::Refused(const NodeId& peer, const ports::RecordId& id) {
  Peer& p = PeerOf(peer);
  Settle(p, id);
  Strike(p);
  StartAll();
}

void RecordPulls::Useless(const NodeId& peer, const ports::RecordId& id) {
  Settle(PeerOf(peer), id);
  StartAll();
}

void RecordPulls::Postponed(const NodeId& peer, absl::Duration pause) {
  PeerOf(peer).not_before = loop_.Now() + pause;
  StartAll();
}

void RecordPulls::ForgetRefusals() {
  for (auto& [id, peer] : peers_) {
    peer.settled.clear();
    peer.strikes = 0;
    peer.not_before = absl::InfinitePast();
  }
  StartAll();
}

void RecordPulls::End(Peer& peer) {
  if (!peer.pull.has_value()) return;
  peer.pull.reset();
  --under_way_;
}

void RecordPulls::Strike(Peer& peer) {
  End(peer);
  const int64_t doublings = std::min(peer.strikes++, kMaxDoublings);
  peer.not_before =
      loop_.Now() +
      std::min(kFirstPause * (int64_t{1} << doublings), kLongestPause);
}

void RecordPulls::Settle(Peer& peer, const ports::RecordId& id) {
  if (peer.settled.size() >= kMaxSettled) peer.settled.pop_front();
  peer.settled.push_back(id.hash);
}

void RecordPulls::Tick() {
  const absl::Time now = loop_.Now();
  for (auto& [id, peer] : peers_) {
    if (!peer.pull.has_value()) continue;
    const Pull& pull = *peer.pull;
    const absl::Time end =
        pull.since + kSilence +
        absl::Seconds(static_cast<double>(pull.total) / kLeastBytesPerSecond);
    if (now >= pull.heard + kSilence || now >= end) Strike(peer);
  }
  StartAll();
  KeepTicking();
}

void RecordPulls::KeepTicking() {
  const bool busy = std::any_of(peers_.begin(), peers_.end(), [](auto& p) {
    return p.second.pull.has_value() || !p.second.offers.empty();
  });
  if (timer_ != 0 || !busy) return;
  timer_ = loop_.After(kTick, [this] {
    timer_ = 0;
    Tick();
  });
}

size_t RecordPulls::offers() const {
  size_t count = 0;
  for (const auto& [id, peer] : peers_) count += peer.offers.size();
  return count;
}

}  // namespace dfl::runtime
