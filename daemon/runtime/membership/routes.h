// Routes: frames to members that are not linked go from member to member, by
// the ring of the overlay.
//
// A frame is dropped, and counted, when it has passed ports::kMaxHops links,
// when nobody is known who is nearer, when the queue it would wait in is full,
// or when the peer it came from has used up its allowance. So a peer that
// floods others through this node costs them no more than that.
//
// Loop only.
#ifndef DFL_RUNTIME_MEMBERSHIP_ROUTES_H_
#define DFL_RUNTIME_MEMBERSHIP_ROUTES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/member_frames.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/membership/overlay.h"
#include "daemon/runtime/membership/probe_paths.h"

namespace dfl::runtime {

// What one peer may have passed on, and answered, in bytes: so much at once,
// and so much more each second. A frame counts as kLeastFrame at least.
struct RouteAllowance {
  static constexpr int64_t kLeastFrame = 512;
  int64_t at_once = 2 << 20;
  int64_t each_second = 512 << 10;
};

// Frames of others.
struct RouteCounts {
  int64_t passed_on = 0;
  int64_t too_far = 0;         // kMaxHops
  int64_t no_way = 0;          // or no room in its queue
  int64_t over_allowance = 0;  // of the peer that sent them
};

class Routes final : public ProbePaths {
 public:
  // All must outlive it.
  Routes(NodeId self, ports::Loop& loop, Links& links, const Overlay& overlay,
         const RouteAllowance& allowance = {});

  // ProbePaths
  absl::Status SendVia(const NodeId& via, ports::ProbeFrame frame) override;
  absl::Status Send(ports::ProbeFrame frame) override;
  bool Take(const NodeId& from, ports::ProbeFrame& frame) override;
  bool Take(const NodeId& from, ports::ProbeAckFrame& frame) override;
  std::vector<NodeId> Partners() const override {
    return overlay_.LinksOf(self_);
  }
  absl::Duration AnswerDeadline(const NodeId& peer,
                                const DeadlineBounds& bounds) const override {
    return links_.AnswerDeadline(peer, bounds);
  }
  void NoteAnswer(const NodeId& peer, absl::Duration time) override {
    links_.NoteAnswer(peer, time);
  }
  void NoteNoAnswer(const NodeId& peer, absl::Duration deadline) override {
    links_.NoteNoAnswer(peer, deadline);
  }

  // As those for probes.
  absl::Status Send(ports::QueryFrame frame);
  bool Take(const NodeId& from, ports::QueryFrame& frame);
  bool Take(const NodeId& from, ports::QueryPartFrame& frame);

  // Sends this node's answer to what `from` has brought. An ack goes by `from`,
  // which is on a way that works: where a probe was passed on, the direct link
  // is the one in doubt. The part of an answer goes straight to its target if
  // that is linked, else by `from`.
  // Errors: NOT_FOUND when neither is linked.
  absl::Status SendBack(const NodeId& from, ports::ProbeAckFrame frame);
  absl::Status SendBack(const NodeId& from, ports::QueryPartFrame frame);

  // Takes `bytes` out of the allowance of `from`. False: it has not so much.
  bool Spend(const NodeId& from, int64_t bytes);

  // Sorted.
  std::vector<NodeId> LinkedPeers() const;
  const RouteCounts& counts() const { return counts_; }

 private:
  struct Purse {
    int64_t left = 0;
    absl::Time at;  // when that was so
  };

  template <typename F>
  absl::Status SendOwn(F frame);
  // Passes a frame on, or drops it.
  template <typename F>
  void Forward(const NodeId& from, F frame);
  template <typename F>
  bool TakeOrForward(const NodeId& from, F& frame);
  // What is left of a purse by now.
  int64_t LeftOf(const Purse& purse) const;
  // Forgets purses that are full again, when there are many.
  void MakeRoom();

  const NodeId self_;
  ports::Loop& loop_;
  Links& links_;
  const Overlay& overlay_;
  const RouteAllowance allowance_;
  std::map<NodeId, Purse> purses_;
  RouteCounts counts_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_ROUTES_H_
