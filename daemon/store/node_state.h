// What a node must know after a restart: its plan and what the operator asked
// for. Kept in two files written in turn, so that a write that went wrong (torn,
// empty, flipped bits) leaves the generation before it.
//
//   node_state.0, node_state.1    dfl.storage.v1.NodeStateFile
#ifndef DFL_STORE_NODE_STATE_H_
#define DFL_STORE_NODE_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/ports/files.h"

namespace dfl::store {

// Where the operator wants the node to be.
enum class DesiredPhase { kIdle, kTraining, kPaused, kStopped };

struct NodeState {
  std::string node;     // name of the node; "": not told
  uint64_t starts = 0;  // how often a daemon has started on this directory
  std::string plan;     // the plan's YAML; "": none
  uint64_t plan_version = 0;
  std::string run_id;
  DesiredPhase desired_phase = DesiredPhase::kIdle;
  // Addresses that were added to those of the settings, host:port.
  std::vector<std::string> added_peers;
};

// Thread-compatible. `files` must outlive it. Call Load once, before Save.
class NodeStateStore {
 public:
  struct Loaded {
    NodeState state;     // as new when there was none
    bool found = false;  // whether there was one
    // What was wrong with a file and which generation is used instead; "" when
    // all is well. For the log.
    std::string note;
  };

  explicit NodeStateStore(ports::Files& files) : files_(files) {}

  // The newest whole generation. A first generation that is torn counts as
  // none.
  // Errors: DATA_LOSS when both files are there and neither is whole;
  // FAILED_PRECONDITION when a newer dfld wrote one; as Files::Read when neither
  // could be read. The message says what to do.
  absl::StatusOr<Loaded> Load();

  // Writes `state` as the next generation, over the older of the two files.
  // Errors: as Files::WriteAtomically; the generation before stays.
  absl::Status Save(const NodeState& state);

  // Of the state loaded or saved last; 0: none.
  uint64_t generation() const { return generation_; }

 private:
  ports::Files& files_;
  uint64_t generation_ = 0;
  int next_slot_ = 0;  // the file that Save writes
};

}  // namespace dfl::store

#endif  // DFL_STORE_NODE_STATE_H_
