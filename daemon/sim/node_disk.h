// What a simulated node keeps on its disk, and what the disk does to it.
//
// It is dfld's keeper (runtime/run_keeper.h) in dfld's form
// (store/node_state.h): a start reads the state, counts itself and takes up the
// plan that is there; a plan is on disk before it is taken. While a node trains
// its checkpoints are written, where the scenario wants them.
#ifndef DFL_SIM_NODE_DISK_H_
#define DFL_SIM_NODE_DISK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/runtime/keeper/run_keeper.h"
#include "daemon/sim/network_event.h"
#include "daemon/simports/sim_files.h"
#include "daemon/store/checkpoint_files.h"

namespace dfl::sim {

class NodeDisk {
 public:
  // A start of the node `name`. The version of the plan that the disk holds;
  // none: no whole state is left, and what was there is gone.
  std::optional<uint64_t> Begin(const std::string& name);

  // After Begin. What cannot be written is counted.
  void TakeUp(runtime::KeptPlan plan);
  // False: it is not kept, so the node must not take it.
  bool Accept(runtime::KeptPlan plan);
  void NoteInForce(uint64_t version) { keeper_->NoteInForce(version); }

  // Of the starts that the disk knows of.
  uint64_t starts() const { return keeper_->starts(); }
  // Since the last Begin; 0: none.
  uint64_t version_in_force() const {
    return keeper_ ? keeper_->version_in_force() : 0;
  }
  int64_t writes_failed() const { return writes_failed_; }

  // For the book of records.
  ports::Files& files() { return files_; }
  // Of this start. Only after Begin.
  runtime::CheckpointStore& checkpoints() { return *checkpoints_; }

  // One more or one fewer event with that fault is under way. Whether it has
  // room again.
  bool SetFault(DiskFault fault, int64_t change);
  // Power is lost.
  void Crash();

 private:
  int64_t& faults(DiskFault fault) { return faults_[static_cast<int>(fault)]; }

  simports::SimFiles files_;
  // Of this start.
  std::unique_ptr<runtime::RunKeeper> keeper_;
  std::unique_ptr<store::CheckpointFiles> checkpoints_;
  int64_t faults_[3] = {0, 0, 0};  // under way, by DiskFault
  int64_t writes_failed_ = 0;
};

}  // namespace dfl::sim

#endif  // DFL_SIM_NODE_DISK_H_
