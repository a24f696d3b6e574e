// What a node keeps on its disk, and what a disk does to it.
//
// As dfld (store/node_state.h): a start reads the state, counts itself and takes
// the plan up that is there; a plan is on disk before it is taken. One thing is
// shorter: the plan's text stands for its version, since all nodes have the same.
// Nothing is written while a node trains.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/sim/simulation.h"

namespace dfl::sim {
namespace {

// Starts within one nanosecond that are told apart.
constexpr int64_t kStartsInOne = 1024;

}  // namespace

// Where nothing whole is left the node is set up anew with the newest plan, by its
// settings `run.plan` and `run.autostart`, or by hand; where both generations are
// broken dfld says that they must be removed first. The number of starts may be an
// older one then, or a torn one's: as in dfld the time makes an incarnation one
// that never was.
int64_t Simulation::ReadDisk(int64_t i) {
  Slot& slot = slots_[static_cast<size_t>(i)];
  if (slot.disk_faults[static_cast<int>(DiskFault::kLost)] > 0) {
    slot.disk.Empty();
  }
  slot.store = std::make_unique<store::NodeStateStore>(slot.disk);
  absl::StatusOr<store::NodeStateStore::Loaded> loaded = slot.store->Load();
  if (!loaded.ok()) {
    slot.disk.Empty();
    slot.store = std::make_unique<store::NodeStateStore>(slot.disk);
    loaded = slot.store->Load();
  }
  if (loaded.ok() && loaded->found) {
    slot.version = loaded->state.plan_version - plan_->version;
    slot.starts = loaded->state.starts;
  } else {
    if (slot.boots > 1) ++result_.states_lost;
    slot.version = newest_;
    slot.starts = 0;
  }
  ++slot.starts;
  // One that cannot be written holds nobody up: what is there stays.
  (void)WriteDisk(i, slot.version);
  const absl::Duration passed = scheduler_.Now() - absl::UnixEpoch();
  return absl::ToInt64Nanoseconds(passed) * kStartsInOne +
         static_cast<int64_t>(slot.starts);
}

absl::Status Simulation::WriteDisk(int64_t i, size_t version) {
  Slot& slot = slots_[static_cast<size_t>(i)];
  const core::RunPlan& plan = *versions_[version].plan;
  store::NodeState state;
  state.node = name(i);
  state.starts = slot.starts;
  state.plan = absl::StrCat(plan.version);
  state.plan_version = plan.version;
  state.run_id = plan.run_id;
  state.desired_phase = store::DesiredPhase::kTraining;
  absl::Status written = slot.store->Save(state);
  if (!written.ok()) ++result_.writes_failed;
  return written;
}

void Simulation::SetDiskFault(const NetworkEvent& event, int64_t change) {
  const int64_t i = event.members[0];
  Slot& slot = slots_[static_cast<size_t>(i)];
  int64_t& count = slot.disk_faults[static_cast<int>(event.fault)];
  count += change;
  if (event.fault != DiskFault::kFull) return;
  slot.disk.set_capacity(count > 0 ? 0 : -1);
  if (count == 0 && slot.up() && slot.version < newest_) GiveNewest(i);
}

}  // namespace dfl::sim
