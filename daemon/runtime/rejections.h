// Counts and reports what peers sent and this node did not take.
#ifndef DFL_RUNTIME_REJECTIONS_H_
#define DFL_RUNTIME_REJECTIONS_H_

#include <string>

#include "daemon/base/ids.h"
#include "daemon/ports/events.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/transfers/refusal.h"

namespace dfl::runtime {

class Rejections {
 public:
  // Both must outlive it.
  Rejections(PeerTable& peers, ports::EventSink& events)
      : peers_(peers), events_(events) {}

  // Returns `refusal`.
  Refusal Note(const NodeId& from, Refusal refusal) {
    peers_.CountRejected(from, refusal.reason);
    // Where a node is not ready yet, or busy, counting is enough.
    if (refusal.reason != ports::RefuseReason::kNotReady &&
        refusal.reason != ports::RefuseReason::kBusy) {
      events_.Report(
          ports::MessageRejected{from, refusal.reason, refusal.text});
    }
    return refusal;
  }

 private:
  PeerTable& peers_;
  ports::EventSink& events_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_REJECTIONS_H_
