// The node's model as something to be sent.
#ifndef DFL_RUNTIME_OUTGOING_MODEL_H_
#define DFL_RUNTIME_OUTGOING_MODEL_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "daemon/base/ids.h"
#include "daemon/core/vector/message_format.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/flat_model.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/transfers/snapshot.h"
#include "daemon/runtime/transfers/transfers.h"

namespace dfl::runtime {

// A message to `to` made of `snapshot`, in `format` with the share `rate` of
// its coordinates (dense: all). When it was taken, `peers` counts it; both must
// outlive the transfer. The caller fills in what it is an answer to, or its
// round.
inline Outgoing OutgoingModel(const FlatModel& model, PeerTable& peers,
                              const NodeId& to, ports::TransferKind kind,
                              core::MessageFormat format, double rate,
                              SnapshotPtr snapshot) {
  Outgoing outgoing;
  outgoing.to = to;
  outgoing.kind = kind;
  outgoing.format = format;
  outgoing.snapshot = std::move(snapshot);
  outgoing.step = outgoing.snapshot->step;
  const int64_t n = model.parameter_count();
  outgoing.sent_coordinates = format.coordinates == core::Coordinates::kDense
                                  ? n
                                  : core::SentCoordinates(rate, n);
  const int64_t dense_bytes = 4 * (n + model.buffer_count());
  outgoing.done = [&peers, to, dense_bytes](const absl::StatusOr<Receipt>& r) {
    if (r.ok()) peers.CountSent(to, dense_bytes);
  };
  return outgoing;
}

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_OUTGOING_MODEL_H_
