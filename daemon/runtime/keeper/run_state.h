// What a node must know after a restart, and the form in which it is kept.
#ifndef DFL_RUNTIME_KEEPER_RUN_STATE_H_
#define DFL_RUNTIME_KEEPER_RUN_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace dfl::runtime {

// Where the operator wants the node to be.
enum class DesiredPhase { kIdle, kTraining, kPaused, kStopped };

// A plan as it is kept: the keeper does not look into its text.
struct KeptPlan {
  std::string text;      // its YAML; "": none
  uint64_t version = 0;  // 0: none
  std::string run_id;
  // The record that it came as, as it travels; "": it came as none.
  std::string record = {};
};

struct RunState {
  std::string node;     // name of the node; "": not told
  uint64_t starts = 0;  // how often a daemon has started on this directory
  std::shared_ptr<const KeptPlan> plan = std::make_shared<KeptPlan>();
  DesiredPhase desired_phase = DesiredPhase::kIdle;
  // Mark of the last signed order of a phase that was obeyed; 0: none was.
  uint64_t obeyed_order = 0;
  // Addresses that were added to those of the settings, host:port.
  std::vector<std::string> added_peers;
};

// A state with the count of writes, from 1; of two the larger one holds.
struct StateGeneration {
  uint64_t number = 0;
  RunState state;
};

// The bytes of a generation. store/node_state.h has the one that is used.
class StateCodec {
 public:
  virtual ~StateCodec() = default;

  // Errors: INTERNAL.
  virtual absl::StatusOr<std::string> Encode(
      const StateGeneration& generation) const = 0;

  // Errors: DATA_LOSS says in what way `bytes` are broken; FAILED_PRECONDITION
  // when a newer dfld wrote them.
  virtual absl::StatusOr<StateGeneration> Decode(
      const std::string& bytes) const = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_KEEPER_RUN_STATE_H_
