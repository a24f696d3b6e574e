// The sending side of transfers (transfers.h): models are encoded ahead on the
// worker, cut into chunks, sent within a window, and kept until they are
// acknowledged.
//
// Loop only.
#ifndef DFL_RUNTIME_TRANSFERS_OUTBOUND_TRANSFERS_H_
#define DFL_RUNTIME_TRANSFERS_OUTBOUND_TRANSFERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/transfers/outgoing.h"
#include "daemon/runtime/transfers/transfer_listener.h"

namespace dfl::runtime {

class OutboundTransfers {
 public:
  // All must outlive it.
  OutboundTransfers(const TransfersOptions& options, ports::Loop& loop,
                    ports::Worker& worker, Links& links,
                    TransferListener& listener);
  ~OutboundTransfers();

  // Starts a transfer. Its `done` is never called from inside.
  void Send(Outgoing outgoing);

  // Gives up answering: the peer wants no answer any more.
  void CancelAnswer(const NodeId& to, uint64_t ask);
  // Gives up sending mass: it is void.
  void CancelMass();
  // Gives all up: the model changes.
  void Reset();
  // Whether `to` has max_answers_per_peer answers under way.
  bool TooManyAnswers(const NodeId& to) const;

  void OnPeerUp(const NodeId& peer, bool restarted);
  void OnPeerDown(const NodeId& peer);
  void OnPeerWritable(const NodeId& peer);
  void OnAck(const NodeId& from, const ports::TransferAck& ack);
  // The receiver does not take it.
  void OnCancel(const NodeId& from, const ports::TransferCancel& cancel);

  int64_t size() const { return static_cast<int64_t>(transfers_.size()); }

 private:
  struct Transfer;
  using TransferPtr = std::shared_ptr<Transfer>;

  // On the worker: encodes about `room` bytes of chunks of `chunk_bytes`.
  static void Encode(Transfer& transfer, int64_t room, int64_t chunk_bytes);
  // Whether the whole body is one chunk that may go with the announcement.
  static bool IsShort(const Transfer& transfer);
  // Why an acknowledgement cannot be; "": it can.
  static std::string Contradiction(const Transfer& transfer,
                                   const ports::TransferAck& ack);

  // Gives the transfer up unless the link comes back in time.
  void Await(Transfer& transfer);
  void Announce(Transfer& transfer);
  // Encodes ahead until the window is full.
  void Produce(const TransferPtr& transfer);
  void OnProduced(const TransferPtr& transfer);
  // Sends what the queue takes of the chunks that are ready.
  void Pump(Transfer& transfer);
  void Advance(const TransferPtr& transfer, int64_t received);
  void Finish(uint64_t id, absl::StatusOr<Receipt> result);
  // Finishes all that `which` is true of.
  void FinishIf(const std::function<bool(const Transfer&)>& which,
                const absl::Status& why);
  // Finishes with an error and tells the receiver.
  void GiveUp(uint64_t id, ports::RefuseReason reason, const absl::Status& why);

  const TransfersOptions options_;
  ports::Loop& loop_;
  ports::Worker& worker_;
  Links& links_;
  TransferListener& listener_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, TransferPtr> transfers_;
  // From an announcement to its first acknowledgement, the last one of the
  // link.
  std::map<NodeId, absl::Duration> round_trips_;
  // Work that comes back after we are gone finds this expired.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_TRANSFERS_OUTBOUND_TRANSFERS_H_
