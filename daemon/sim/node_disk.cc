#include "daemon/sim/node_disk.h"

#include <utility>

#include "absl/status/statusor.h"
#include "daemon/store/node_state.h"

namespace dfl::sim {
namespace {

const store::NodeStateCodec kCodec;

}  // namespace

// Where both generations are broken dfld says that they must be removed first.
std::optional<uint64_t> NodeDisk::Begin(const std::string& name) {
  if (faults(DiskFault::kLost) > 0) files_.Empty();
  const auto begin = [&] {
    keeper_ = std::make_unique<runtime::RunKeeper>(files_, kCodec, name);
    return keeper_->Begin();
  };
  checkpoints_ = std::make_unique<store::CheckpointFiles>(files_);
  absl::StatusOr<runtime::RunKeeper::Begun> begun = begin();
  if (!begun.ok()) {
    files_.Empty();
    begun = begin();
  }
  if (!begun.ok() || !begun->found) return std::nullopt;
  return keeper_->known()->version;
}

void NodeDisk::TakeUp(runtime::KeptPlan plan) {
  if (!keeper_->TakeUp(std::move(plan)).ok()) ++writes_failed_;
}

bool NodeDisk::Accept(runtime::KeptPlan plan) {
  const bool accepted =
      keeper_->Accept(std::move(plan), runtime::DesiredPhase::kTraining).ok();
  if (!accepted) ++writes_failed_;
  return accepted;
}

bool NodeDisk::SetFault(DiskFault fault, int64_t change) {
  faults(fault) += change;
  if (fault != DiskFault::kFull) return false;
  const bool full = faults(fault) > 0;
  files_.set_capacity(full ? 0 : -1);
  return !full;
}

void NodeDisk::Crash() {
  if (faults(DiskFault::kTorn) > 0) files_.TearLastWrite();
}

}  // namespace dfl::sim
