// Membership: who is in the network, and how they do. Each node keeps a table
// of all members, which converges by gossip over the links that there are.
//
//   FailureDetector  probes members and suspects those that do not answer
//   MemberTable      which of two statements on a member holds
//   MemberNews       passes statements on, and compares tables now and then
//   StandingLinks    which members to stay linked with, beside neighbours
//   Heartbeats       closes links that carry nothing any more
//   Routes           passes frames on to members that are not linked
//   Queries, Pings   ask a member, wherever it is, for its whole status, or
//                    whether it lives
//
// Switched off it says nothing and answers nothing: a network of links that are
// given by hand.
//
// Loop only. Pure: all time and traffic goes through ports.
#ifndef DFL_RUNTIME_MEMBERSHIP_MEMBERSHIP_H_
#define DFL_RUNTIME_MEMBERSHIP_MEMBERSHIP_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/events.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/links/frame_router.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/membership/failure_detector.h"
#include "daemon/runtime/membership/heartbeats.h"
#include "daemon/runtime/membership/member_news.h"
#include "daemon/runtime/membership/member_table.h"
#include "daemon/runtime/membership/pings.h"
#include "daemon/runtime/membership/queries.h"
#include "daemon/runtime/membership/routes.h"
#include "daemon/runtime/membership/standing_links.h"

namespace dfl::runtime {

struct MembershipOptions {
  bool enabled = false;
  NodeId self;
  uint64_t starts = 1;       // how often this node has started
  uint64_t seed = 1;         // of what is drawn
  ports::MemberFacts facts;  // what it says of itself first
};

// Is told of changes of the table, the node's own entry included. Calls come on
// the loop, and must not call Membership but for Meet and for what is const.
class MembershipListener {
 public:
  virtual ~MembershipListener() = default;
  // `member` is new, has another state or says something else of itself. Null:
  // it was forgotten.
  virtual void OnMember(const NodeId& node, const Member* member) = 0;
};

// What a question is about.
inline constexpr int32_t kStatusTopic = 1;

class Membership
    : public FrameReceivers<ports::ProbeFrame, ports::ProbeAckFrame,
                            ports::MembersFrame, ports::MembersDigestFrame,
                            ports::QueryFrame, ports::QueryPartFrame>,
      public LinkObserver,
      private FailureDetector::Judge {
 public:
  using Answer = Queries::Answer;

  // All must outlive it.
  Membership(MembershipOptions options, ports::Loop& loop, Links& links,
             ports::EventSink& events);
  ~Membership() override;

  bool enabled() const { return options_.enabled; }

  // It must outlive the membership, or be removed.
  void AddListener(MembershipListener* listener) {
    listeners_.push_back(listener);
  }
  void RemoveListener(MembershipListener* listener) {
    listeners_.erase(
        std::remove(listeners_.begin(), listeners_.end(), listener),
        listeners_.end());
  }

  // All that are known, this node included. Those that left or died stay for a
  // while.
  const std::map<NodeId, Member>& members() const { return table_.members(); }
  // As long as it stays, so do all members.
  uint64_t changes() const { return table_.changes(); }

  // What this node says of itself from now on. Does nothing where it says that
  // already.
  void SetFacts(ports::MemberFacts facts);
  const ports::MemberFacts& facts() const { return facts_; }

  // With whom this node exchanges models, in either direction. They stay
  // linked.
  void SetNeighbours(std::vector<NodeId> neighbours);

  // With whom this node has something to settle. They are linked, too, until
  // the next call, as far as they can be dialled or dial.
  void Meet(std::set<NodeId> nodes) {
    if (active()) standing_.Meet(std::move(nodes));
  }

  // Addresses "host:port" where `source` has found somebody, all of them. Each
  // is dialled until a member has answered there, and again when it has gone.
  void SetCandidates(const std::string& source,
                     std::vector<std::string> addresses);

  // Says goodbye to all who are linked, at once. The node is no present member
  // in any table afterwards, and takes no part in membership any more.
  void Leave();

  // How far this node doubts its own judgement of others: 0, not at all, to
  // kWorstHealth.
  int health() const { return detector_ ? detector_->health().score() : 0; }

  // `peer`, which is linked, seems to know other members than this node does:
  // both compare what they know, at most once a second.
  void Reconcile(const NodeId& peer) {
    if (active()) news_->Compare(peer);
  }

  // What is answered to questions of `topic`. Without an Answer the answer is
  // an error.
  void SetAnswer(int32_t topic, Answer answer);

  // Asks `target`, wherever it is. `done` is called once, on the loop, never
  // from inside this call, with the answer or
  //   NOT_FOUND          no such member, or no way to it
  //   RESOURCE_EXHAUSTED too many questions wait already
  //   DEADLINE_EXCEEDED  no answer within `within`
  //   UNAVAILABLE        the target has none; the text is its own
  void Ask(const NodeId& target, int32_t topic, absl::Duration within,
           std::function<void(absl::StatusOr<std::string>)> done);

  // Whether `target` answers, and how fast. As Ask.
  void SendPing(const NodeId& target, absl::Duration within,
                std::function<void(absl::StatusOr<Ping>)> done);

  // FrameReceivers
  void OnFrame(const NodeId& from, ports::ProbeFrame frame) override;
  void OnFrame(const NodeId& from, ports::ProbeAckFrame frame) override;
  void OnFrame(const NodeId& from, ports::MembersFrame frame) override;
  void OnFrame(const NodeId& from, ports::MembersDigestFrame frame) override;
  void OnFrame(const NodeId& from, ports::QueryFrame frame) override;
  void OnFrame(const NodeId& from, ports::QueryPartFrame frame) override;

  // LinkObserver
  void OnPeerUp(const NodeId& peer, bool restarted) override;
  void OnPeerDown(const NodeId& peer, const absl::Status& reason) override;
  void OnPeerWritable(const NodeId& peer) override;
  void OnAddressFailed(const std::string& address) override;

 private:
  // FailureDetector::Judge
  void OnNoAnswer(const NodeId& node) override;
  void OnSuspicionOver(const NodeId& node) override;
  void OnPeriod() override;

  // How long a linked peer may be silent before it is probed; zero: for ever.
  absl::Duration HeartbeatOfPeer(const NodeId& peer) const;
  // Whether this node takes part: it is switched on and has not left.
  bool active() const { return options_.enabled && !left_; }
  // `from` says so; empty: this node does.
  void Apply(const ports::MemberUpdate& update, const NodeId& from);
  // Another node says that it is this one. Bounds the quarrel between two of
  // one name. Whether the statement is to be dropped.
  bool IsQuarrel(const ports::MemberUpdate& update);
  // All changes of the table come by here, but for entries that are forgotten.
  void TableChanged(const NodeId& node,
                    std::optional<ports::MemberState> before);
  // Tells all what this node says of itself now.
  void TellOwn();
  // Tells a linked peer what it is thought to be, unless that is alive.
  void LetRefute(const NodeId& peer);
  void Forget();

  const MembershipOptions options_;
  ports::Loop& loop_;
  Links& links_;
  ports::EventSink& events_;
  std::vector<MembershipListener*> listeners_;
  ports::MemberFacts facts_;
  bool left_ = false;
  absl::Time quarrelled_ = absl::InfinitePast();
  MemberTable table_;
  StandingLinks standing_;
  Routes routes_;
  Pings pings_;
  Queries queries_;
  Heartbeats heartbeats_;
  // Null when switched off.
  std::unique_ptr<MemberNews> news_;
  std::unique_ptr<FailureDetector> detector_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_MEMBERSHIP_H_
