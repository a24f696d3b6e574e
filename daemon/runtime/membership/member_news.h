// MemberNews: how what one node knows of members comes to all.
//
//   News       is flooded: it waits a moment for other news, and goes once to
//              every linked peer but those that have said the same.
//   A link     that comes up carries both sides' digests first; what the sender
//              of a digest knows differently is sent to it, by buckets of
//              names.
//   Probes     carry the digest of the whole table. Of two tables that differ
//              twice in a row the buckets are compared ("anti-entropy").
//
// So nothing is sent while nothing is new. A peer costs a few words; news cost
// their size until they have left.
//
// Loop only.
#ifndef DFL_RUNTIME_MEMBERSHIP_MEMBER_NEWS_H_
#define DFL_RUNTIME_MEMBERSHIP_MEMBER_NEWS_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/member_frames.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/membership/member_table.h"

namespace dfl::runtime {

class MemberNews {
 public:
  // News wait for `batch`. All must outlive it.
  MemberNews(absl::Duration batch, const MemberTable& table, ports::Loop& loop,
             Links& links)
      : batch_(batch), table_(table), loop_(loop), links_(links) {}
  ~MemberNews() { loop_.Cancel(timer_); }
  MemberNews(const MemberNews&) = delete;
  MemberNews& operator=(const MemberNews&) = delete;

  // `update` is to be known to all. It came from `from`; empty: from this node.
  void Tell(const ports::MemberUpdate& update, const NodeId& from);
  // `peer` has said `update`, which is known here: it need not be told.
  void Heard(const ports::MemberUpdate& update, const NodeId& peer);
  // Sends what waits now.
  void Flush();

  // Tells `peer` alone, at once, what the table says of `node`.
  void TellOne(const NodeId& peer, const NodeId& node);

  void OnPeerUp(const NodeId& peer);
  void OnPeerDown(const NodeId& peer) { peers_.erase(peer); }

  // Compares tables with `peer`, at most once in kBetweenAnswers.
  void Compare(const NodeId& peer);

  // `peer` has sent its buckets.
  void OnDigest(const NodeId& peer, const ports::MembersDigestFrame& frame);
  // The digest of `peer`'s whole table, as a probe or its ack carries it; 0:
  // not told.
  void OnTableDigest(const NodeId& peer, uint64_t digest);

 private:
  // Of a linked peer.
  struct Peer {
    int differed = 0;  // digests in a row that were not ours
    absl::Time answered = absl::InfinitePast();
    absl::Time asked = absl::InfinitePast();  // by Compare
  };
  struct Piece {
    ports::MemberUpdate update;
    int64_t size = 0;  // in a frame
    std::set<NodeId> known_to;
  };
  // Whom it is about, and who suspects.
  using PieceKey = std::pair<NodeId, NodeId>;

  static Piece PieceOf(ports::MemberUpdate update);
  // In frames within their bounds.
  void Send(const NodeId& peer, const std::vector<const Piece*>& pieces);
  void SendDigest(const NodeId& peer, bool wants_answer);

  const absl::Duration batch_;
  const MemberTable& table_;
  ports::Loop& loop_;
  Links& links_;
  std::map<NodeId, Peer> peers_;  // linked
  std::map<PieceKey, Piece> waiting_;
  ports::TimerId timer_ = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_MEMBER_NEWS_H_
