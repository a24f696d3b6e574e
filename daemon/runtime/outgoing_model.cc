#include "daemon/runtime/outgoing_model.h"

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"

namespace dfl::runtime {

Outgoing OutgoingModel(const FlatModel& model, PeerTable& peers,
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
