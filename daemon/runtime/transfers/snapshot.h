// One immutable copy of a node's model at a boundary, shared by every message
// that is encoded from it.
#ifndef DFL_RUNTIME_TRANSFERS_SNAPSHOT_H_
#define DFL_RUNTIME_TRANSFERS_SNAPSHOT_H_

#include <cstdint>
#include <memory>

#include "daemon/base/aligned_vector.h"

namespace dfl::runtime {

struct Snapshot {
  FlatVector parameters;  // [n]
  FlatVector buffers;     // [b]
  int64_t step = 0;       // k: finished iterations
  int64_t steps = 0;      // mini-batch gradients that lie behind it
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_TRANSFERS_SNAPSHOT_H_
