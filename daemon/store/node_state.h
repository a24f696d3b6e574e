// How runtime::StateFiles' files are written on disk:
// dfl.storage.v1.NodeStateFile with a format version and a checksum.
#ifndef DFL_STORE_NODE_STATE_H_
#define DFL_STORE_NODE_STATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "daemon/runtime/keeper/run_state.h"

namespace dfl::store {

// Thread-safe.
class NodeStateCodec final : public runtime::StateCodec {
 public:
  absl::StatusOr<std::string> Encode(
      const runtime::StateGeneration& generation) const override;
  absl::StatusOr<runtime::StateGeneration> Decode(
      const std::string& bytes) const override;
};

}  // namespace dfl::store

#endif  // DFL_STORE_NODE_STATE_H_
