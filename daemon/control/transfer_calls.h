// What the calls do that export and import the model, once the gate has let
// them in; and those by which any file travels.
#ifndef DFL_CONTROL_TRANSFER_CALLS_H_
#define DFL_CONTROL_TRANSFER_CALLS_H_

#include <memory>

#include "daemon/control/answers.h"
#include "daemon/control/backend.h"
#include "daemon/control/control_server.h"
#include "daemon/control/timers.h"
#include "daemon/control/token_files.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl::control {

// Thread-safe.
class TransferCalls {
 public:
  // All outlive it.
  TransferCalls(Backend& backend, Answers& answers, Timers& timers,
                const ControlServerOptions& options);

  // Frees all transfers.
  void Close() { files_->Clear(); }
  // Of exports and imports, and of others that travel by the same calls.
  const std::shared_ptr<TokenFiles>& files() const { return files_; }

  // Handlers, in the order of control.proto.
  Reactor* BeginExport(const Call&, const dfl::control::v1::BeginExportRequest*,
                       dfl::control::v1::BeginExportResponse*);
  Reactor* ReadExport(const Call&, const dfl::control::v1::ReadExportRequest*,
                      dfl::control::v1::ReadExportResponse*);
  Reactor* BeginImport(const Call&, const dfl::control::v1::BeginImportRequest*,
                       dfl::control::v1::BeginImportResponse*);
  Reactor* WriteImport(const Call&, const dfl::control::v1::WriteImportRequest*,
                       dfl::control::v1::WriteImportResponse*);
  Reactor* CommitImport(const Call&,
                        const dfl::control::v1::CommitImportRequest*,
                        dfl::control::v1::CommitImportResponse*);
  Reactor* EndTransfer(const Call&, const dfl::control::v1::EndTransferRequest*,
                       dfl::control::v1::EndTransferResponse*);

 private:
  Backend& backend_;
  Answers& answers_;
  // Shared with answers that come after the end.
  const std::shared_ptr<TokenFiles> files_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_TRANSFER_CALLS_H_
