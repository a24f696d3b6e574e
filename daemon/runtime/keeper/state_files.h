// The state in two files that are written in turn, so that a write that went
// wrong (torn, empty, flipped bits) leaves the generation before it.
//
//   node_state.0, node_state.1
#ifndef DFL_RUNTIME_KEEPER_STATE_FILES_H_
#define DFL_RUNTIME_KEEPER_STATE_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/ports/files.h"
#include "daemon/runtime/keeper/run_state.h"

namespace dfl::runtime {

// Thread-compatible. Both must outlive it. Call Load once, before Save.
class StateFiles {
 public:
  struct Loaded {
    RunState state;      // as new when there was none
    bool found = false;  // whether there was one
    // What was wrong with a file and which generation is used instead; "" when
    // all is well. For the log.
    std::string note;
  };

  StateFiles(ports::Files& files, const StateCodec& codec)
      : files_(files), codec_(codec) {}

  // The newest whole generation. A first generation that is torn counts as
  // none.
  // Errors: DATA_LOSS when both files are there and neither is whole;
  // FAILED_PRECONDITION when a newer dfld wrote one; as Files::Read when
  // neither could be read. The message says what to do.
  absl::StatusOr<Loaded> Load();

  // Writes `state` as the next generation, over the older of the two files.
  // Errors: as Files::WriteAtomically; the generation before stays.
  absl::Status Save(const RunState& state);

  // The generation of the state loaded or saved last; 0: none.
  uint64_t generation() const { return generation_; }

 private:
  ports::Files& files_;
  const StateCodec& codec_;
  uint64_t generation_ = 0;
  int next_slot_ = 0;  // the file that Save writes
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_KEEPER_STATE_FILES_H_
