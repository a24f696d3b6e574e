// How probes and their acks reach members: over the one link there is, or
// passed on from member to member.
//
// Implementation: Routes, by the ring of the standing links.
#ifndef DFL_RUNTIME_MEMBERSHIP_PROBE_PATHS_H_
#define DFL_RUNTIME_MEMBERSHIP_PROBE_PATHS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/member_frames.h"
#include "daemon/runtime/links/link_times.h"

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

  // Whether a frame that came from the linked peer `from` is for this node.
  // One for another node is passed on, or dropped. The origin of a probe gets a
  // receipt of the first who is to pass it on, whether that is possible or not:
  // it says that the origin was heard.
  virtual bool Take(const NodeId& from, ports::ProbeFrame& frame) = 0;
  virtual bool Take(const NodeId& from, ports::ProbeAckFrame& frame) = 0;

  // The members that this node should be linked with, whether it is or not;
  // sorted. Every member is one of somebody's, if it can be linked at all.
  virtual std::vector<NodeId> Partners() const = 0;

  // How long a linked peer has to answer over its link, as its answers have
  // shown; and that one took `time`, or did not come within `deadline`.
  virtual absl::Duration AnswerDeadline(const NodeId& peer,
                                        const DeadlineBounds& bounds) const = 0;
  virtual void NoteAnswer(const NodeId& peer, absl::Duration time) = 0;
  virtual void NoteNoAnswer(const NodeId& peer, absl::Duration deadline) = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_PROBE_PATHS_H_
