// How probes and their acks reach members: over the one link there is, or
// passed on from member to member.
//
// Implementations: Routes, by the ring of the standing links, and DirectPaths
// below, which knows links only.
#ifndef DFL_RUNTIME_MEMBERSHIP_PROBE_PATHS_H_
#define DFL_RUNTIME_MEMBERSHIP_PROBE_PATHS_H_

#include <utility>

#include "absl/status/status.h"
#include "daemon/base/ids.h"
#include "daemon/ports/member_frames.h"
#include "daemon/runtime/links/links.h"

namespace dfl::runtime {

// Loop only.
class ProbePaths {
 public:
  virtual ~ProbePaths() = default;

  // Sends a frame of this node's own, whose route says so, to the linked peer
  // `via`, who is its target or passes it on.
  // Errors: NOT_FOUND when `via` is not linked.
  virtual absl::Status SendVia(const NodeId& via, ports::ProbeFrame frame) = 0;

  // The same by the shortest way that is known to the frame's target.
  // Errors: NOT_FOUND when there is none.
  virtual absl::Status Send(ports::ProbeFrame frame) = 0;
  virtual absl::Status Send(ports::ProbeAckFrame frame) = 0;

  // Whether a frame that came from the linked peer `from` is for this node.
  // One for another node is passed on, or dropped. The origin of a probe gets a
  // receipt of the first who is to pass it on, whether that is possible or not:
  // it says that the origin was heard.
  virtual bool Take(const NodeId& from, ports::ProbeFrame& frame) = 0;
  virtual bool Take(const NodeId& from, ports::ProbeAckFrame& frame) = 0;
};

// Passes frames on to linked peers only. `links` must outlive it.
class DirectPaths final : public ProbePaths {
 public:
  DirectPaths(NodeId self, Links& links)
      : self_(std::move(self)), links_(links) {}

  absl::Status SendVia(const NodeId& via, ports::ProbeFrame frame) override {
    return links_.Send(via, std::move(frame));
  }
  absl::Status Send(ports::ProbeFrame frame) override {
    const NodeId target = frame.route.target;
    return links_.Send(target, std::move(frame));
  }
  absl::Status Send(ports::ProbeAckFrame frame) override {
    const NodeId target = frame.route.target;
    return links_.Send(target, std::move(frame));
  }
  bool Take(const NodeId& from, ports::ProbeFrame& frame) override {
    if (frame.route.target == self_) return true;
    ports::ProbeAckFrame receipt;
    receipt.route = {.origin = self_, .target = frame.route.origin};
    receipt.number = frame.number;
    receipt.receipt = true;
    const bool first = frame.route.hops == 0;
    PassOn(from, frame);
    if (first) (void)links_.Send(from, std::move(receipt));
    return false;
  }
  bool Take(const NodeId& from, ports::ProbeAckFrame& frame) override {
    if (frame.route.target == self_) return true;
    PassOn(from, frame);
    return false;
  }

 private:
  template <typename F>
  void PassOn(const NodeId& from, F& frame) {
    const NodeId target = frame.route.target;
    if (target == from || ++frame.route.hops > ports::kMaxHops) return;
    (void)links_.Send(target, std::move(frame));
  }

  const NodeId self_;
  Links& links_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_PROBE_PATHS_H_
