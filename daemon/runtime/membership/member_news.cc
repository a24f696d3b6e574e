#include "daemon/runtime/membership/member_news.h"

#include <algorithm>
#include <cstddef>

#include "daemon/ports/frames.h"

namespace dfl::runtime {

using ports::MembersDigestFrame;
using ports::MembersFrame;
using ports::MemberUpdate;

namespace {

// A peer is answered no more often, whatever digests it sends.
constexpr absl::Duration kBetweenAnswers = absl::Seconds(1);
// What a frame holds beside statements.
constexpr int64_t kFrameBytes = 16;

}  // namespace

MemberNews::Piece MemberNews::PieceOf(MemberUpdate update) {
  MembersFrame alone;
  alone.members.push_back(std::move(update));
  Piece piece;
  piece.size = ports::EncodedSize(alone);
  piece.update = std::move(alone.members[0]);
  return piece;
}

void MemberNews::Tell(const MemberUpdate& update, const NodeId& from) {
  Piece& piece = waiting_[{update.node, update.by}];
  piece = PieceOf(update);
  if (!from.empty()) piece.known_to.insert(from);
  if (timer_ == 0) {
    timer_ = loop_.After(batch_, [this] { Flush(); });
  }
}

void MemberNews::Heard(const MemberUpdate& update, const NodeId& peer) {
  const auto found = waiting_.find({update.node, update.by});
  if (found == waiting_.end()) return;
  const MemberUpdate& ours = found->second.update;
  if (ours.incarnation == update.incarnation && ours.state == update.state) {
    found->second.known_to.insert(peer);
  }
}

void MemberNews::Flush() {
  loop_.Cancel(std::exchange(timer_, 0));
  const auto waiting = std::exchange(waiting_, {});
  std::vector<const Piece*> current;
  for (const auto& [key, piece] : waiting) {
    // Meanwhile something newer may have come, which is told instead.
    const Member* member = table_.Find(piece.update.node);
    if (member != nullptr && member->incarnation == piece.update.incarnation &&
        member->state == piece.update.state) {
      current.push_back(&piece);
    }
  }
  for (const auto& [peer, state] : peers_) {
    std::vector<const Piece*> news;
    for (const Piece* piece : current) {
      if (piece->known_to.count(peer) == 0) news.push_back(piece);
    }
    Send(peer, news);
  }
}

void MemberNews::TellOne(const NodeId& peer, const NodeId& node) {
  const Piece piece = PieceOf(table_.StatementOn(node));
  Send(peer, {&piece});
}

void MemberNews::Send(const NodeId& peer,
                      const std::vector<const Piece*>& pieces) {
  MembersFrame frame;
  int64_t size = kFrameBytes;
  const auto send = [&] {
    if (frame.members.empty()) return;
    (void)links_.Send(peer, std::exchange(frame, {}));
    size = kFrameBytes;
  };
  for (const Piece* piece : pieces) {
    if (frame.members.size() == ports::kMaxMembersInFrame ||
        size + piece->size > ports::kMaxControlFrameBytes) {
      send();
    }
    frame.members.push_back(piece->update);
    size += piece->size;
  }
  send();
}

void MemberNews::SendDigest(const NodeId& peer, bool wants_answer) {
  MembersDigestFrame frame;
  frame.buckets.assign(table_.buckets().begin(), table_.buckets().end());
  frame.wants_answer = wants_answer;
  (void)links_.Send(peer, std::move(frame));
}

void MemberNews::OnPeerUp(const NodeId& peer) {
  peers_[peer] = Peer();
  SendDigest(peer, /*wants_answer=*/false);
}

void MemberNews::Compare(const NodeId& peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end() ||
      loop_.Now() - found->second.asked < kBetweenAnswers) {
    return;
  }
  found->second.asked = loop_.Now();
  SendDigest(peer, /*wants_answer=*/true);
}

void MemberNews::OnDigest(const NodeId& peer, const MembersDigestFrame& frame) {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || frame.buckets.size() != ports::kDigestBuckets) {
    return;
  }
  if (loop_.Now() - found->second.answered < kBetweenAnswers) return;
  found->second.answered = loop_.Now();
  if (frame.wants_answer) SendDigest(peer, /*wants_answer=*/false);
  const MemberTable::Buckets& ours = table_.buckets();
  std::vector<Piece> pieces;
  if (!std::equal(ours.begin(), ours.end(), frame.buckets.begin())) {
    for (const auto& [node, member] : table_.members()) {
      const size_t bucket = MemberTable::BucketOf(node);
      if (ours[bucket] == frame.buckets[bucket]) continue;
      pieces.push_back(PieceOf(table_.StatementOn(node)));
    }
  }
  std::vector<const Piece*> all;
  all.reserve(pieces.size());
  for (const Piece& piece : pieces) all.push_back(&piece);
  Send(peer, all);
}

void MemberNews::OnTableDigest(const NodeId& peer, uint64_t digest) {
  const auto found = peers_.find(peer);
  if (digest == 0 || found == peers_.end()) return;
  Peer& state = found->second;
  if (digest == table_.digest()) {
    state.differed = 0;
  } else if (++state.differed >= 2) {
    state.differed = 0;
    SendDigest(peer, /*wants_answer=*/true);
  }
}

}  // namespace dfl::runtime
