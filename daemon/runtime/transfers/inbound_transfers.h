// The receiving side of transfers (transfers.h): bodies are put together up to
// the announced size, acknowledged, checked on the worker, and handed on.
//
// Loop only.
#ifndef DFL_RUNTIME_TRANSFERS_INBOUND_TRANSFERS_H_
#define DFL_RUNTIME_TRANSFERS_INBOUND_TRANSFERS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/codec/header.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/transfers/refusal.h"
#include "daemon/runtime/transfers/transfer_listener.h"

namespace dfl::runtime {

class InboundTransfers {
 public:
  // All must outlive it.
  InboundTransfers(const TransfersOptions& options, ports::Loop& loop,
                   ports::Worker& worker, Links& links,
                   TransferListener& listener);
  ~InboundTransfers();

  // Gives up receiving the answer to `ask`; OnTransferLost is not called.
  void CancelAnswer(const NodeId& from, uint64_t ask);
  // Refuses all that are under way: the model changes.
  void Reset();
  // Bytes came for this answer within `period` before now.
  bool Moved(const NodeId& from, uint64_t ask, absl::Duration period) const;

  void OnPeerUp(const NodeId& peer, bool restarted);
  void OnPeerDown(const NodeId& peer);
  void OnBegin(const NodeId& from, ports::TransferBegin begin);
  void OnChunk(const NodeId& from, const ports::Chunk& chunk);
  // The sender gives it up.
  void OnCancel(const NodeId& from, const ports::TransferCancel& cancel);

  int64_t size() const { return static_cast<int64_t>(transfers_.size()); }

 private:
  struct Transfer;
  using TransferPtr = std::shared_ptr<Transfer>;
  using Key = std::pair<NodeId, uint64_t>;
  using Map = std::map<Key, TransferPtr>;
  struct Admitted {
    codec::EncodedHeader header;
    ModelLengths lengths;
  };
  struct Completed {
    uint64_t transfer = 0;
    double taken = 0;
  };

  // Answers an announcement that is repeated after a lost link. Returns whether
  // it is one.
  bool Repeated(const Key& key, const ports::TransferBegin& begin);
  // Checks a first announcement; where it is not taken, says so to all whom it
  // concerns and returns an error.
  absl::StatusOr<Admitted> Admit(const NodeId& from,
                                 const ports::TransferBegin& begin);
  void Open(const Key& key, ports::TransferBegin begin,
            const Admitted& admitted);
  bool IsAnswer(Map::const_iterator it, const NodeId& from, uint64_t ask) const;
  // Ends it when nothing more of it comes, though the link is up.
  void Await(const Key& key, Transfer& transfer);
  // Bytes of a body; `it` may be gone afterwards.
  void Append(Map::iterator it, int64_t offset, absl::string_view data);
  // What the link needs for it, where that can be told.
  void NoteTime(const Key& key, const Transfer& transfer);
  // All are here: on the worker.
  void Check(Map::iterator it);
  void OnChecked(const Key& key, const TransferPtr& transfer);
  // It was taken; the sender is told.
  void Complete(const Key& key, int64_t body_bytes, double taken);
  void Refuse(const Key& key, const Refusal& refusal);
  // Refuses what no honest peer sends, once it was admitted.
  void RefuseBad(const Key& key, const std::string& why);
  void Lose(const Key& key, const std::string& why);

  const TransfersOptions options_;
  ports::Loop& loop_;
  ports::Worker& worker_;
  Links& links_;
  TransferListener& listener_;
  Map transfers_;
  // The last few that each peer completed: when the acknowledgement was lost
  // with its link, the sender announces once more.
  std::map<NodeId, std::deque<Completed>> completed_;
  // Work that comes back after we are gone finds this expired.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_TRANSFERS_INBOUND_TRANSFERS_H_
