// Models that are sent without being asked for: ours to the neighbours that
// take part, and those of in-neighbours to the algorithm.
//
// Loop only.
#ifndef DFL_RUNTIME_PUSH_EXCHANGE_H_
#define DFL_RUNTIME_PUSH_EXCHANGE_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/links/frame_router.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/pushes.h"
#include "daemon/runtime/transfers/refusal.h"
#include "daemon/runtime/transfers/transfers.h"

namespace dfl::runtime {

class PushExchange : public FrameReceiver<ports::SkipFrame> {
 public:
  // All must outlive it.
  PushExchange(OwnState& own, PeerTable& peers, Links& links,
               Transfers& transfers, ports::Loop& loop);

  // What the algorithm wants. An offer is of the tracker epoch
  // `tracker_epoch`, as what is given in answer to it will be.
  void Do(const core::Push& action, uint64_t tracker_epoch = 0);
  void Do(const core::Skip& action);

  // Why a push of `from` is not taken now; nullopt: it is.
  std::optional<Refusal> Objection(const NodeId& from) const;
  // Whether the algorithm drops a push of `round`, since that is too long ago.
  bool IsTooLate(int64_t round) const;
  // An admitted push has come. One of a graph that is still to come is kept.
  void OnPush(const NodeId& from, core::RemoteModel model);
  // A push of `round` has come from `from` and cannot be used: nothing more of
  // the present round will come, unless that was of an earlier one, and nobody
  // should wait for it.
  void PassOver(const NodeId& from, int64_t round);
  // A round begins: hands on what was kept for its graph.
  void DeliverEarly();

  // The algorithm ends: what waits is not sent, what was kept is dropped.
  void Stop();
  // What is under way ends without a consequence, to all, or to a peer that has
  // lost its memory.
  void Forget() { pushes_.Forget(); }
  void Forget(const NodeId& peer) { pushes_.Forget(peer); }
  // The run or the format of messages is new: what waits is in the old one.
  void ChangeFormat() {
    pushes_.DropWaiting();
    pushes_.ForgetReferences();
  }
  // Other coordinates are sent: what waits has too many or too few.
  void ChangeRate() { pushes_.DropWaiting(); }

  // FrameReceiver
  void OnFrame(const NodeId& from, ports::SkipFrame skip) override;

 private:
  // Of the parameters as they are now, or of `values` when not empty.
  SnapshotPtr TakeSnapshot(absl::Span<const float> values);
  bool IsOfLaterGraph(int64_t round) const;

  OwnState& own_;
  PeerTable& peers_;
  Links& links_;
  ports::Loop& loop_;
  Pushes pushes_;
  EarlyPushes early_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_PUSH_EXCHANGE_H_
