// A model, or mass, to be sent, and what comes of it.
#ifndef DFL_RUNTIME_TRANSFERS_OUTGOING_H_
#define DFL_RUNTIME_TRANSFERS_OUTGOING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/ids.h"
#include "daemon/codec/edge_reference.h"
#include "daemon/codec/encoder.h"
#include "daemon/core/vector/message_format.h"
#include "daemon/core/vector/mod_code.h"
#include "daemon/core/vector/step_codes.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/transfers/snapshot.h"

namespace dfl::runtime {

// A peer took what was sent.
struct Receipt {
  codec::SentValues sent;  // top-k only
  double taken = 0;        // kMass: core::Delivered::taken
};

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
  // What is sent in the place of `mass`, or null; and with it.
  std::shared_ptr<const core::ModAnswer> answer;
  std::vector<float> buffers;
  // kPush: what is sent in the place of the snapshot's parameters, or null.
  std::shared_ptr<const core::ModOffer> offer;
  uint64_t tracker_epoch = 0;
  uint64_t sequence = 0;
  // Top-k: what the peer was sent so far, [n]; not changed before `done`.
  std::shared_ptr<const codec::EdgeReference> reference;
  // Called once: when the peer took it, else with an error.
  std::function<void(absl::StatusOr<Receipt>)> done;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_TRANSFERS_OUTGOING_H_
