// Transfers: models on their way, cut into chunks, acknowledged, resumed after
// a lost link, and checked before anybody sees them.
//
// The life of one transfer
//   sender    TransferBegin{id, header, size, the body if it is short}
//   receiver  TransferAck{id, received = 0}: go on     (or TransferCancel)
//   sender    Chunk{id, offset, data} ..., at most window_bytes unacknowledged
//   receiver  TransferAck{id, received} every quarter of window_bytes
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
#ifndef DFL_RUNTIME_TRANSFERS_H_
#define DFL_RUNTIME_TRANSFERS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/edge_reference.h"
#include "daemon/codec/encoder.h"
#include "daemon/codec/header.h"
#include "daemon/core/vector/message_format.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/frame_router.h"
#include "daemon/runtime/links.h"
#include "daemon/runtime/refusal.h"
#include "daemon/runtime/snapshot.h"

namespace dfl::runtime {

struct TransfersOptions {
  int64_t chunk_bytes = 256 << 10;  // at most ports::kMaxChunkBytes
  int64_t window_bytes = 8 << 20;
  // A transfer whose link is gone waits this long for the next one.
  absl::Duration resume_within = absl::Seconds(30);
  // At most this many at once from one peer.
  int64_t max_inbound_per_peer = 4;
  // At most this many answers under way to one peer.
  int64_t max_answers_per_peer = 4;
};

// A peer took what was sent.
struct Receipt {
  codec::SentValues sent;  // top-k only
  double taken = 0;        // kMass: core::Delivered::taken
};

// A model, or mass, to be sent.
struct Outgoing {
  NodeId to;
  ports::TransferKind kind = ports::TransferKind::kAnswer;
  uint64_t ask = 0;
  int64_t step = 0;
  core::MessageFormat format;
  int64_t sent_coordinates = 0;
  uint64_t seed = 0;
  std::vector<double> scalars;
  // kPush: when the algorithm asked for it.
  absl::Time since = absl::InfiniteFuture();
  SnapshotPtr snapshot;
  // kMass: what is given, in the place of `snapshot`; and its names.
  std::shared_ptr<const FlatVector> mass;
  std::shared_ptr<const core::StepCodes> steps;  // that `mass` is of, or null
  uint64_t tracker_epoch = 0;
  uint64_t sequence = 0;
  // Top-k: what the peer was sent so far, [n]; not changed before `done`.
  std::shared_ptr<const codec::EdgeReference> reference;
  // Called once: when the peer took it, else with an error.
  std::function<void(absl::StatusOr<Receipt>)> done;
};

// What a transfer must have for its message to be taken.
struct ModelLengths {
  int64_t parameters = 0;
  int64_t buffers = 0;
};

// A transfer may come in if it has these lengths, or it is refused.
using Admission = std::variant<ModelLengths, Refusal>;

class Transfers
    : public FrameReceivers<ports::TransferBegin, ports::Chunk,
                            ports::TransferAck, ports::TransferCancel> {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // Whether a transfer may come in. `header` is what its announcement's header
    // says; null: it is malformed, which Transfers refuses by itself.
    virtual Admission Admit(const NodeId& from,
                            const ports::TransferBegin& begin,
                            const codec::EncodedHeader* header) = 0;
    // A whole message, checked. `age`: how long ago it was asked for at the
    // sender, without comparing clocks: the age that the sender announced, half
    // the round trip from our first acknowledgement to the first chunk, and the
    // time since the announcement. To the age of a short one the sender adds half
    // the round trip that it last measured on this link (0: none yet).
    virtual void OnModel(const NodeId& from, ports::TransferKind kind,
                         uint64_t ask, int64_t step,
                         std::vector<double> scalars, absl::Duration age,
                         std::unique_ptr<codec::DecodedMessage> message) = 0;
    // Mass, checked. Returns what the acknowledgement is to say as `taken`.
    virtual double OnMass(const NodeId& from, uint64_t tracker_epoch,
                          uint64_t sequence, int64_t round,
                          std::vector<double> scalars,
                          std::unique_ptr<codec::DecodedMessage> message) = 0;
    // A transfer that was admitted will not be completed.
    virtual void OnTransferLost(const NodeId& from, ports::TransferKind kind,
                                uint64_t ask, const std::string& why) = 0;
    // What the peer sent was wrong; the transfer was refused.
    virtual void OnBadMessage(const NodeId& from, ports::RefuseReason reason,
                              const std::string& text) = 0;
  };

  Transfers(TransfersOptions options, ports::Loop& loop, ports::Worker& worker,
            Links& links, Listener& listener);
  ~Transfers() override;

  // Starts a transfer. Its `done` is never called from inside.
  void Send(Outgoing outgoing);

  // Gives up answering: the peer wants no answer any more.
  void CancelOutbound(const NodeId& to, uint64_t ask);
  // Gives up sending mass: it is void.
  void CancelMass();
  // Gives up receiving the answer to `ask`; OnTransferLost is not called.
  void CancelInbound(const NodeId& from, uint64_t ask);
  // Forgets everything, with `done` errors: the model changes.
  void Reset();

  // Whether `to` has max_answers_per_peer answers under way: the next one is
  // to be refused.
  bool TooManyAnswers(const NodeId& to) const;

  // Bytes came for this answer within `period` before now.
  bool InboundMoved(const NodeId& from, uint64_t ask,
                    absl::Duration period) const;

  void OnPeerUp(const NodeId& peer, bool restarted);
  void OnPeerDown(const NodeId& peer);
  void OnPeerWritable(const NodeId& peer);

  // FrameReceivers
  void OnFrame(const NodeId& from, ports::TransferBegin begin) override;
  void OnFrame(const NodeId& from, ports::Chunk chunk) override;
  void OnFrame(const NodeId& from, ports::TransferAck ack) override;
  void OnFrame(const NodeId& from, ports::TransferCancel cancel) override;

  // Transfers under way, for tests of the bounds.
  int64_t outbound() const { return static_cast<int64_t>(outbound_.size()); }
  int64_t inbound() const { return static_cast<int64_t>(inbound_.size()); }

 private:
  struct Outbound;
  struct Inbound;
  struct Completed {
    uint64_t transfer = 0;
    double taken = 0;
  };
  using InboundKey = std::pair<NodeId, uint64_t>;

  // Gives the transfer up unless the link comes back in time.
  void AwaitLink(Outbound& outbound);
  void Announce(Outbound& outbound);
  static bool IsShort(const Outbound& outbound);
  // Encodes ahead on the worker until the window is full.
  void Produce(const std::shared_ptr<Outbound>& outbound);
  void Pump(Outbound& outbound);
  void Finish(uint64_t id, absl::StatusOr<Receipt> result);
  // Finishes with an error and tells the receiver.
  void GiveUp(uint64_t id, const std::string& why);
  using InboundMap = std::map<InboundKey, std::shared_ptr<Inbound>>;
  // Bytes of a body; `it` may be gone afterwards.
  void Append(InboundMap::iterator it, int64_t offset, absl::string_view data);
  // All are here: on the worker.
  void Check(InboundMap::iterator it);
  // It was taken; the sender is told.
  void Complete(const InboundKey& key, int64_t body_bytes, double taken);
  void Refuse(const NodeId& from, uint64_t transfer, const Refusal& refusal);
  void LoseInbound(const InboundKey& key, const std::string& why);

  const TransfersOptions options_;
  ports::Loop& loop_;
  ports::Worker& worker_;
  Links& links_;
  Listener& listener_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, std::shared_ptr<Outbound>> outbound_;
  InboundMap inbound_;
  // The last few that each peer completed: when the acknowledgement was lost
  // with its link, the sender announces once more.
  std::map<NodeId, std::deque<Completed>> completed_;
  // From an announcement to its first acknowledgement, the last one of the link.
  std::map<NodeId, absl::Duration> round_trips_;
  // Work that comes back after we are gone finds this expired.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_TRANSFERS_H_
