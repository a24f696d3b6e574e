// What the calls do that list, save and restore checkpoints, once the gate has
// let them in. Files travel by the calls of transfer_calls.h.
#ifndef DFL_CONTROL_CHECKPOINT_CALLS_H_
#define DFL_CONTROL_CHECKPOINT_CALLS_H_

#include <memory>

#include "daemon/control/answers.h"
#include "daemon/control/backend.h"
#include "daemon/control/token_files.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl::control {

// Thread-safe.
class CheckpointCalls {
 public:
  // All outlive it.
  CheckpointCalls(Backend& backend, Answers& answers,
                  std::shared_ptr<TokenFiles> files);

  // Handlers, in the order of control.proto.
  Reactor* ListCheckpoints(const Call&,
                           const dfl::control::v1::ListCheckpointsRequest*,
                           dfl::control::v1::ListCheckpointsResponse*);
  Reactor* SaveCheckpoint(const Call&,
                          const dfl::control::v1::SaveCheckpointRequest*,
                          dfl::control::v1::SaveCheckpointResponse*);
  Reactor* BeginCheckpointExport(
      const Call&, const dfl::control::v1::BeginCheckpointExportRequest*,
      dfl::control::v1::BeginCheckpointExportResponse*);
  Reactor* BeginRestore(const Call&,
                        const dfl::control::v1::BeginRestoreRequest*,
                        dfl::control::v1::BeginRestoreResponse*);
  Reactor* CommitRestore(const Call&,
                         const dfl::control::v1::CommitRestoreRequest*,
                         dfl::control::v1::CommitRestoreResponse*);

 private:
  Backend& backend_;
  Answers& answers_;
  // Shared with answers that come after the end.
  const std::shared_ptr<TokenFiles> files_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_CHECKPOINT_CALLS_H_
