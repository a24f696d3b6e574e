// Counts and reports what peers sent and this node did not take. A peer of
// which that is to be said again and again is shut out, see links/offences.h.
#ifndef DFL_RUNTIME_REJECTIONS_H_
#define DFL_RUNTIME_REJECTIONS_H_

#include <string>

#include "daemon/base/ids.h"
#include "daemon/ports/events.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/transfers/refusal.h"

namespace dfl::runtime {

class Rejections {
 public:
  // All must outlive it.
  Rejections(PeerTable& peers, ports::EventSink& events, Links& links)
      : peers_(peers), events_(events), links_(links) {}

  // Returns `refusal`.
  Refusal Note(const NodeId& from, Refusal refusal) {
    peers_.CountRejected(from, refusal);
    // Where a node is not ready yet, or busy, counting is enough.
    if (refusal.reason != ports::RefuseReason::kNotReady &&
        refusal.reason != ports::RefuseReason::kBusy) {
      events_.Report(
          ports::MessageRejected{from, refusal.reason, refusal.text});
    }
    // The other reasons befall honest nodes too.
    if (refusal.reason == ports::RefuseReason::kBadMessage) {
      links_.Offend(from, refusal.text);
    }
    return refusal;
  }

 private:
  PeerTable& peers_;
  ports::EventSink& events_;
  Links& links_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_REJECTIONS_H_
