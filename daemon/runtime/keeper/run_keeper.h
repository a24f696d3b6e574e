// What a node holds on to over restarts: the newest plan and its record, what
// the operator wanted, how often it has started, the addresses that were added
// by hand. The same in dfld and in the simulator.
//
// A plan goes through three stages here:
//   known     the newest plan that the disk holds; after a start it has not
//             been looked at yet, and it may no longer fit this node
//   accepted  checked, on disk, and handed to the node
//   in force  the node has adopted it at a boundary
//
// Every change is on disk when its method returns; where it could not be
// written, nothing has changed, except where a method says otherwise.
#ifndef DFL_RUNTIME_KEEPER_RUN_KEEPER_H_
#define DFL_RUNTIME_KEEPER_RUN_KEEPER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/ports/files.h"
#include "daemon/runtime/keeper/run_state.h"
#include "daemon/runtime/keeper/state_files.h"

namespace dfl::runtime {

// Thread-compatible. Methods that write wait for the disk.
class RunKeeper {
 public:
  struct Begun {
    bool found = false;  // whether there was a state
    std::string note;    // as StateFiles::Loaded
  };
  enum class Offer { kNew, kUnchanged };

  // Both must outlive it.
  RunKeeper(ports::Files& files, const StateCodec& codec, std::string node);

  // Reads the state and counts this start. Nothing is written: TakeUp, Accept
  // or Save does that. Once, before all else.
  // Errors: as StateFiles::Load.
  absl::StatusOr<Begun> Begin();

  // Never null; without a text when no plan is known.
  const std::shared_ptr<const KeptPlan>& known() const { return state_.plan; }
  // The known plan's version once it is accepted; 0: none since the start.
  uint64_t accepted_version() const { return accepted_version_; }
  // 0: none since the start.
  uint64_t version_in_force() const { return version_in_force_; }
  DesiredPhase desired_phase() const { return state_.desired_phase; }
  uint64_t starts() const { return state_.starts; }
  const std::vector<std::string>& added_peers() const {
    return state_.added_peers;
  }

  // Whether `plan` may follow the known one. kUnchanged: it is the one that is
  // accepted, whatever was expected. `expected_version`: what the caller took
  // the known one for; none: any will do.
  // Errors: ABORTED when another version is known than expected, or when `plan`
  // is another document and its version is not above the known one.
  absl::StatusOr<Offer> Judge(const KeptPlan& plan,
                              std::optional<uint64_t> expected_version) const;

  // As Judge, for a plan whose order among all others is not its version alone:
  // the newest signed record. Another document of the same version may follow.
  Offer JudgeOrdered(const KeptPlan& plan) const;

  // Takes `plan` over. If it begins another run, `in_new_run` is wanted from
  // here on.
  // Errors: as Files.
  absl::Status Accept(KeptPlan plan,
                      DesiredPhase in_new_run = DesiredPhase::kIdle);

  // Undoes the last Accept, for a node that refused the plan.
  // Errors: as Files; it is undone in memory all the same.
  absl::Status TakeBack();

  // After a start: the known plan fits and is accepted as it was; what was
  // wanted is wanted still. `plan` is the known one in its present canonical
  // form.
  // Errors: as Files; the plan is accepted all the same, for a disk that is
  // full keeps nobody from the run.
  absl::Status TakeUp(KeptPlan plan);

  // The node has adopted the plan of that version.
  void NoteInForce(uint64_t version) { version_in_force_ = version; }

  // What the operator wants of the run `run_id`; without effect when the known
  // plan is of another run by now.
  // Errors: as Files; it is wanted all the same.
  absl::Status Want(DesiredPhase phase, const std::string& run_id);

  // As Want, for a signed order, which `mark` stands for: it is not obeyed
  // again.
  // Errors: as Want.
  absl::Status Obey(DesiredPhase phase, const std::string& run_id,
                    uint64_t mark);
  // 0: none was obeyed.
  uint64_t obeyed_order() const { return state_.obeyed_order; }

  // Errors: as Files.
  absl::Status AddPeer(const std::string& address);
  // Absent is fine.
  // Errors: as Files; it is forgotten in memory all the same.
  absl::Status RemovePeer(const std::string& address);

  // Writes all as it is.
  // Errors: as Files.
  absl::Status Save() { return files_.Save(state_); }

 private:
  struct Before {
    std::shared_ptr<const KeptPlan> plan;
    DesiredPhase desired_phase;
    uint64_t accepted_version;
  };
  void PutBack();

  StateFiles files_;
  RunState state_;
  uint64_t accepted_version_ = 0;
  uint64_t version_in_force_ = 0;
  std::optional<Before> before_;  // the last Accept
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_KEEPER_RUN_KEEPER_H_
