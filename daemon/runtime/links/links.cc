#include "daemon/runtime/links/links.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace dfl::runtime {

using ports::LinkId;
using ports::PeerIdentity;

namespace {

// Who claims what a person gave.
constexpr char kByHand[] = "";

// Forgets peers that were linked longest ago, if there are too many.
void ForgetOldest(std::map<NodeId, Links::Peer>& peers) {
  while (peers.size() > kMostPeersKept) {
    auto oldest = peers.end();
    for (auto it = peers.begin(); it != peers.end(); ++it) {
      if (it->second.link != 0) continue;
      if (oldest == peers.end() || it->second.since < oldest->second.since) {
        oldest = it;
      }
    }
    if (oldest == peers.end()) return;  // all are linked
    peers.erase(oldest);
  }
}

}  // namespace

Links::Links(LinksOptions options, ports::Loop& loop,
             ports::Transport& transport, ports::EventSink& events,
             Listener& listener)
    : options_(std::move(options)),
      loop_(loop),
      transport_(transport),
      events_(events),
      listener_(listener),
      // Any frame is an answer, and this one gets one.
      rivals_(
          options_.probe_within, loop, events,
          [this](const NodeId& node) {
            (void)Send(node, ports::ContractWant{});
          },
          [this](const NodeId& node, const absl::Status& why) {
            transport_.Close(peers_.at(node).link, why);
          }),
      offences_(options_.offences),
      dialler_(
          DiallerOptions{.seed = options_.seed,
                         .first_backoff = options_.first_backoff,
                         .longest_backoff = options_.longest_backoff},
          loop, transport, events,
          [this](const NodeId& node) { return IsUp(node); },
          [this](const NodeId& node) {
            return offences_.Remaining(node, loop_.Now());
          }) {
  transport_.SetHandler(this);
}

Links::~Links() = default;

absl::Status Links::AddAddress(const std::string& address) {
  return dialler_.Claim(kByHand, address, NodeId(), absl::ZeroDuration())
             ? absl::OkStatus()
             : absl::AlreadyExistsError(
                   absl::StrCat(address, " is dialled already"));
}

absl::Status Links::RemoveAddress(const std::string& address) {
  const std::optional<Dialler::Released> released =
      dialler_.Release(kByHand, address);
  if (!released.has_value()) {
    return absl::NotFoundError(
        absl::StrCat("no peer address ", address, " is known"));
  }
  if (released->unclaimed) {
    Drop(released->node, absl::CancelledError("the peer was removed"));
  }
  return absl::OkStatus();
}

void Links::Drop(const NodeId& peer, const absl::Status& reason) {
  if (IsUp(peer)) transport_.Close(peers_.at(peer).link, reason);
}

bool Links::HasRoom(const NodeId& peer, int64_t bytes) const {
  const auto it = peers_.find(peer);
  if (it == peers_.end() || it->second.link == 0) return false;
  // Control frames have twice the bound, chunks have it once.
  const int64_t bound = transport_.max_queued_bytes();
  return transport_.UnsentBytes(it->second.link) + bytes <= bound + bound / 2;
}

void Links::NoteAnswer(const NodeId& peer, absl::Duration time) {
  const auto it = peers_.find(peer);
  if (it != peers_.end()) it->second.times.Note(time);
}

void Links::NoteNoAnswer(const NodeId& peer, absl::Duration deadline) {
  const auto it = peers_.find(peer);
  if (it != peers_.end()) it->second.times.NoteMissed(deadline);
}

absl::Duration Links::AnswerDeadline(const NodeId& peer,
                                     const DeadlineBounds& bounds) const {
  const auto it = peers_.find(peer);
  return (it == peers_.end() ? LinkTimes() : it->second.times).Deadline(bounds);
}

void Links::NoteTransfer(const NodeId& peer, absl::Duration time) {
  const auto it = peers_.find(peer);
  if (it != peers_.end()) it->second.transfers.Note(time);
}

absl::Duration Links::TimeOver(const NodeId& peer) const {
  const auto it = peers_.find(peer);
  if (it == peers_.end() || it->second.link == 0) return absl::ZeroDuration();
  return 2 * it->second.times.mean() + it->second.transfers.Expected();
}

absl::Status Links::Send(const NodeId& peer, ports::Frame frame) {
  const auto it = peers_.find(peer);
  if (it == peers_.end() || it->second.link == 0) {
    return absl::NotFoundError(absl::StrCat(peer.name(), " is not linked"));
  }
  const int64_t size = ports::EncodedSize(frame);
  const bool control = !std::holds_alternative<ports::Chunk>(frame);
  absl::Status sent = transport_.Send(it->second.link, std::move(frame));
  if (sent.ok()) {
    CountSent(it->second, size);
  } else if (control && absl::IsResourceExhausted(sent)) {
    transport_.Close(it->second.link,
                     absl::UnavailableError("the peer has stopped reading"));
  }
  return sent;
}

void Links::CountSent(Peer& peer, int64_t queued) {
  if (peer.link == 0) return;
  if (peer.counted != peer.link) {  // what waited on the last link is lost
    peer.counted = peer.link;
    peer.bytes_queued = peer.bytes_sent;
  }
  peer.bytes_queued += queued;
  peer.bytes_sent = peer.bytes_queued - transport_.UnsentBytes(peer.link);
}

void Links::CountSent() {
  for (auto& [node, peer] : peers_) CountSent(peer, 0);
}

void Links::Offend(const NodeId& peer, const std::string& what) {
  const absl::Time now = loop_.Now();
  if (!offences_.Count(peer, now)) return;
  const std::string text = absl::StrCat(
      "shut out for ", absl::FormatDuration(offences_.Remaining(peer, now)),
      ", as it keeps sending what no node could take; the last was: ", what);
  events_.Report(ports::SecurityNote{
      true, absl::StrCat("peer ", peer.name(), " is ", text)});
  const auto it = peers_.find(peer);
  if (it != peers_.end() && it->second.link != 0) {
    transport_.Close(it->second.link, absl::PermissionDeniedError(text));
  }
}

bool Links::IsUp(const NodeId& peer) const {
  const auto it = peers_.find(peer);
  return it != peers_.end() && it->second.link != 0;
}

void Links::OnDialFailed(const std::string& name, const absl::Status& status) {
  if (dialler_.Failed(name, status)) listener_.OnAddressFailed(name);
}

bool Links::PrefersNew(const Peer& existing, const PeerIdentity& identity,
                       bool dialled_by_us) const {
  if (existing.dialled_by_us == dialled_by_us) return true;
  // The link that the smaller id dialled stays.
  return dialled_by_us == (options_.self < identity.node);
}

absl::Status Links::Admit(const PeerIdentity& peer) {
  const auto it = peers_.find(peer.node);
  if (it == peers_.end() || it->second.link == 0) return rivals_.Admit(peer);
  return it->second.incarnation == peer.incarnation
             ? absl::OkStatus()
             : rivals_.Refuse(it->second.incarnation, peer);
}

bool Links::TurnAway(LinkId link, const PeerIdentity& identity,
                     const std::string& dialled_address) {
  const bool dialled_by_us = !dialled_address.empty();
  if (identity.node == options_.self) {
    transport_.Close(
        link, absl::FailedPreconditionError("the peer has this node's name"));
    return true;
  }
  const absl::Duration shut_out =
      offences_.Remaining(identity.node, loop_.Now());
  if (shut_out > absl::ZeroDuration()) {
    transport_.Close(link, absl::PermissionDeniedError(absl::StrCat(
                               "shut out for ", absl::FormatDuration(shut_out),
                               ": it kept sending what no node could take")));
    if (dialled_by_us) dialler_.DialLater(dialled_address);
    return true;
  }
  // It was dialled here, or the other link came up meanwhile.
  const absl::Status refused = Admit(identity);
  if (refused.ok()) return false;
  transport_.Close(link, refused);
  if (!dialled_by_us) return true;
  // It has accepted, and sees each try: it is dialled rarely once its rival has
  // answered, and soon while that one is being asked.
  if (dialler_.Refused(dialled_address, refused,
                       !absl::IsUnavailable(refused))) {
    listener_.OnAddressFailed(dialled_address);
  }
  return true;
}

void Links::OnLinkUp(LinkId link, const PeerIdentity& identity,
                     const std::string& dialled_address) {
  const bool dialled_by_us = !dialled_address.empty();
  if (dialled_by_us && !dialler_.Answered(dialled_address, identity.node)) {
    transport_.Close(link, absl::CancelledError("the peer was removed"));
    return;
  }
  if (TurnAway(link, identity, dialled_address)) return;
  auto& entry = *peers_.try_emplace(identity.node).first;
  Peer& peer = entry.second;
  const bool restarted =
      peer.incarnation != 0 && peer.incarnation != identity.incarnation;
  const bool replaces = peer.link != 0;
  if (replaces) {
    if (!PrefersNew(peer, identity, dialled_by_us)) {
      transport_.Close(link, absl::CancelledError("a second link"));
      return;
    }
    const LinkId old = peer.link;
    by_link_.erase(old);
    peer.link = 0;
    const absl::Status reason =
        absl::CancelledError("replaced by another link");
    transport_.Close(old, reason);
    listener_.OnPeerDown(identity.node, reason);
  }
  peer.link = link;
  peer.incarnation = identity.incarnation;
  peer.dialled_by_us = dialled_by_us;
  peer.since = loop_.Now();
  peer.heard = peer.since;
  peer.address = dialled_by_us ? dialled_address : identity.advertised;
  peer.last_error.clear();
  by_link_[link] = &entry;
  // Of a change from one link to another nothing is to be reported.
  if (!replaces) {
    events_.Report(ports::LinkUp{identity.node, dialled_address});
  }
  listener_.OnPeerUp(identity.node, restarted);
}

void Links::OnFrame(LinkId link, ports::Frame frame) {
  const auto it = by_link_.find(link);
  if (it == by_link_.end()) return;  // closed meanwhile
  auto& [node, peer] = *it->second;
  peer.bytes_received += ports::EncodedSize(frame);
  peer.heard = loop_.Now();
  rivals_.Heard(node);
  CountSent(peer, 0);
  listener_.OnPeerFrame(node, std::move(frame));
}

void Links::OnWritable(LinkId link) {
  const auto it = by_link_.find(link);
  if (it == by_link_.end()) return;
  listener_.OnPeerWritable(it->second->first);
}

void Links::OnLinkDown(LinkId link, const absl::Status& reason) {
  const auto it = by_link_.find(link);
  if (it == by_link_.end()) return;  // one that was not kept
  auto& [node, peer] = *it->second;
  by_link_.erase(it);
  peer.link = 0;
  peer.last_error = std::string(reason.message());
  rivals_.End(node);
  events_.Report(ports::LinkDown{node, reason});
  listener_.OnPeerDown(node, reason);
  // It broke the protocol.
  if (absl::IsInvalidArgument(reason)) {
    Offend(node, std::string(reason.message()));
  }
  const bool steady = loop_.Now() - peer.since >= options_.steady_after;
  dialler_.Lost(node, steady);
  ForgetOldest(peers_);
}

}  // namespace dfl::runtime
