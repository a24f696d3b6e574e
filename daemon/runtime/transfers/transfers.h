// Transfers: models on their way, cut into chunks, acknowledged, resumed after
// a lost link, and checked before anybody sees them.
//
// The life of one transfer
//   sender    TransferBegin{id, header, size, the body if it is short}
//   receiver  TransferAck{id, received = 0}: go on     (or TransferCancel)
//   sender    Chunk{id, offset, data} ..., at most window_bytes unacknowledged
//   receiver  TransferAck{id, received} every quarter of window_bytes, or when
//             the last one was long ago
//   receiver  all bytes are in and were checked: TransferAck{complete}
//             (or TransferCancel with the reason)
// A short body (one chunk, at most ports::kMaxInlineBodyBytes) goes with its
// TransferBegin, which saves a round trip.
// After a lost link the sender repeats TransferBegin on the new one; the
// acknowledgement says from where to go on. A peer with a new incarnation has
// forgotten everything, and so do we.
//
// Encoding and checking run on the worker; nothing of a model's size is copied
// on the loop. A sender holds one snapshot and window_bytes of chunks; a
// receiver holds one body of exactly the announced size, which was checked
// against its own model before it was allocated.
//
// Loop only.
#ifndef DFL_RUNTIME_TRANSFERS_TRANSFERS_H_
#define DFL_RUNTIME_TRANSFERS_TRANSFERS_H_

#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/links/frame_router.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/transfers/inbound_transfers.h"
#include "daemon/runtime/transfers/outbound_transfers.h"
#include "daemon/runtime/transfers/outgoing.h"
#include "daemon/runtime/transfers/transfer_listener.h"

namespace dfl::runtime {

class Transfers
    : public FrameReceivers<ports::TransferBegin, ports::Chunk,
                            ports::TransferAck, ports::TransferCancel> {
 public:
  using Listener = TransferListener;

  // All must outlive it.
  Transfers(const TransfersOptions& options, ports::Loop& loop,
            ports::Worker& worker, Links& links, Listener& listener)
      : outbound_(options, loop, worker, links, listener),
        inbound_(options, loop, worker, links, listener) {}

  // Starts a transfer. Its `done` is never called from inside.
  void Send(Outgoing outgoing) { outbound_.Send(std::move(outgoing)); }

  // Gives up answering: the peer wants no answer any more.
  void CancelOutbound(const NodeId& to, uint64_t ask) {
    outbound_.CancelAnswer(to, ask);
  }
  // Gives up sending mass: it is void.
  void CancelMass() { outbound_.CancelMass(); }
  // Gives up receiving the answer to `ask`; OnTransferLost is not called.
  void CancelInbound(const NodeId& from, uint64_t ask) {
    inbound_.CancelAnswer(from, ask);
  }
  // Forgets everything, with `done` errors: the model changes.
  void Reset() {
    outbound_.Reset();
    inbound_.Reset();
  }

  // Whether `to` has max_answers_per_peer answers under way: the next one is
  // to be refused.
  bool TooManyAnswers(const NodeId& to) const {
    return outbound_.TooManyAnswers(to);
  }
  // Bytes came for this answer within `period` before now.
  bool InboundMoved(const NodeId& from, uint64_t ask,
                    absl::Duration period) const {
    return inbound_.Moved(from, ask, period);
  }

  void OnPeerUp(const NodeId& peer, bool restarted) {
    outbound_.OnPeerUp(peer, restarted);
    inbound_.OnPeerUp(peer, restarted);
  }
  void OnPeerDown(const NodeId& peer) {
    outbound_.OnPeerDown(peer);
    inbound_.OnPeerDown(peer);
  }
  void OnPeerWritable(const NodeId& peer) { outbound_.OnPeerWritable(peer); }

  // FrameReceivers
  void OnFrame(const NodeId& from, ports::TransferBegin begin) override {
    inbound_.OnBegin(from, std::move(begin));
  }
  void OnFrame(const NodeId& from, ports::Chunk chunk) override {
    inbound_.OnChunk(from, chunk);
  }
  void OnFrame(const NodeId& from, ports::TransferAck ack) override {
    outbound_.OnAck(from, ack);
  }
  void OnFrame(const NodeId& from, ports::TransferCancel cancel) override {
    if (cancel.by_sender) {
      inbound_.OnCancel(from, cancel);
    } else {
      outbound_.OnCancel(from, cancel);
    }
  }

  // Transfers under way, for tests of the bounds.
  int64_t outbound() const { return outbound_.size(); }
  int64_t inbound() const { return inbound_.size(); }

 private:
  OutboundTransfers outbound_;
  InboundTransfers inbound_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_TRANSFERS_TRANSFERS_H_
