// The bounds of transfers, and the listener that receives what they carry.
#ifndef DFL_RUNTIME_TRANSFERS_TRANSFER_LISTENER_H_
#define DFL_RUNTIME_TRANSFERS_TRANSFER_LISTENER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/header.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/transfers/refusal.h"

namespace dfl::runtime {

struct TransfersOptions {
  int64_t chunk_bytes = 256 << 10;  // at most ports::kMaxChunkBytes
  int64_t window_bytes = 8 << 20;
  // A transfer whose link is gone waits this long for the next one.
  absl::Duration resume_within = absl::Seconds(30);
  // Though the link is up, one that goes out is given up when nothing more of
  // it is acknowledged for so long, and one that comes in when nothing more of
  // it comes.
  absl::Duration stalled_after = absl::Minutes(5);
  // What has come is acknowledged every quarter of the window, and, on a slow
  // link, when the last acknowledgement is so long ago.
  absl::Duration acknowledged_every = absl::Seconds(10);
  // At most this many at once from one peer.
  int64_t max_inbound_per_peer = 4;
  // At most this many answers under way to one peer.
  int64_t max_answers_per_peer = 4;
};

// What a transfer must have for its message to be taken.
struct ModelLengths {
  int64_t parameters = 0;
  int64_t buffers = 0;
  // Name what it is for, to whoever admitted it: Recheck gets them back.
  uint64_t life = 0;
  uint64_t tracker_epoch = 0;  // of mass, and of offers
};

// A transfer may come in if it has these lengths, or it is refused.
using Admission = std::variant<ModelLengths, Refusal>;

class TransferListener {
 public:
  virtual ~TransferListener() = default;
  // Whether a transfer may come in. `header` is what its announcement's header
  // says; null: it is malformed, which is refused in any case.
  virtual Admission Admit(const NodeId& from, const ports::TransferBegin& begin,
                          const codec::EncodedHeader* header) = 0;
  // A message is complete and right, which may be long after it was admitted
  // with `admitted`. Why it is not taken after all: nullopt, it is handed on
  // next. Its sender is told.
  virtual std::optional<Refusal> Recheck(const NodeId& from,
                                         ports::TransferKind kind, uint64_t ask,
                                         const ModelLengths& admitted) = 0;
  // A whole message, checked. `age`: how long ago it was asked for at the
  // sender, without comparing clocks: the age that the sender announced, half
  // the round trip from our first acknowledgement to the first chunk, and the
  // time since the announcement. To the age of a short one the sender adds half
  // the round trip that it last measured on this link (0: none yet).
  virtual void OnModel(const NodeId& from, ports::TransferKind kind,
                       uint64_t ask, int64_t step, std::vector<double> scalars,
                       absl::Duration age,
                       std::unique_ptr<codec::DecodedMessage> message) = 0;
  // Mass, checked. Returns what the acknowledgement is to say as `taken`.
  virtual double OnMass(const NodeId& from, uint64_t tracker_epoch,
                        uint64_t sequence, int64_t round,
                        std::vector<double> scalars,
                        std::unique_ptr<codec::DecodedMessage> message) = 0;
  // A transfer that was announced, admitted or not, will not be completed.
  virtual void OnTransferLost(const NodeId& from, ports::TransferKind kind,
                              uint64_t ask, const std::string& why) = 0;
  // What the peer sent was wrong; the transfer was refused.
  virtual void OnBadMessage(const NodeId& from, ports::RefuseReason reason,
                            const std::string& text) = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_TRANSFERS_TRANSFER_LISTENER_H_
