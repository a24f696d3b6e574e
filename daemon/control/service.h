// The calls of dfl.control.v1, each checked, audited if it changes something,
// and handed to Backend. Room-internal.
#ifndef DFL_CONTROL_SERVICE_H_
#define DFL_CONTROL_SERVICE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/control/backend.h"
#include "daemon/control/control_server.h"
#include "daemon/control/pending_calls.h"
#include "daemon/control/token_files.h"
#include "daemon/control/watch_hub.h"
#include "dfl/control/v1/control.grpc.pb.h"

namespace dfl::control {

class Service final : public dfl::control::v1::ControlService::CallbackService {
 public:
  // All arguments outlive it. `name_peer` turns ServerContext::peer() into a
  // name for people.
  Service(Backend& backend, Timers& timers, const ControlServerOptions& options,
          std::function<std::string(const std::string& peer)> name_peer);

  // Ends watches, fails pending calls and frees transfers. Later calls fail.
  void Close();

 private:
  using CallContext = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* GetVersion(CallContext*, const dfl::control::v1::GetVersionRequest*,
                      dfl::control::v1::GetVersionResponse*) override;
  Reactor* GetStatus(CallContext*, const dfl::control::v1::GetStatusRequest*,
                     dfl::control::v1::GetStatusResponse*) override;
  grpc::ServerWriteReactor<dfl::control::v1::WatchResponse>* Watch(
      CallContext*, const dfl::control::v1::WatchRequest*) override;
  Reactor* GetPlan(CallContext*, const dfl::control::v1::GetPlanRequest*,
                   dfl::control::v1::GetPlanResponse*) override;
  Reactor* ApplyPlan(CallContext*, const dfl::control::v1::ApplyPlanRequest*,
                     dfl::control::v1::ApplyPlanResponse*) override;
  Reactor* Train(CallContext*, const dfl::control::v1::TrainRequest*,
                 dfl::control::v1::TrainResponse*) override;
  Reactor* ListPeers(CallContext*, const dfl::control::v1::ListPeersRequest*,
                     dfl::control::v1::ListPeersResponse*) override;
  Reactor* AddPeer(CallContext*, const dfl::control::v1::AddPeerRequest*,
                   dfl::control::v1::AddPeerResponse*) override;
  Reactor* RemovePeer(CallContext*, const dfl::control::v1::RemovePeerRequest*,
                      dfl::control::v1::RemovePeerResponse*) override;
  Reactor* GetSettings(CallContext*,
                       const dfl::control::v1::GetSettingsRequest*,
                       dfl::control::v1::GetSettingsResponse*) override;
  Reactor* BeginExport(CallContext*,
                       const dfl::control::v1::BeginExportRequest*,
                       dfl::control::v1::BeginExportResponse*) override;
  Reactor* ReadExport(CallContext*, const dfl::control::v1::ReadExportRequest*,
                      dfl::control::v1::ReadExportResponse*) override;
  Reactor* BeginImport(CallContext*,
                       const dfl::control::v1::BeginImportRequest*,
                       dfl::control::v1::BeginImportResponse*) override;
  Reactor* WriteImport(CallContext*,
                       const dfl::control::v1::WriteImportRequest*,
                       dfl::control::v1::WriteImportResponse*) override;
  Reactor* CommitImport(CallContext*,
                        const dfl::control::v1::CommitImportRequest*,
                        dfl::control::v1::CommitImportResponse*) override;
  Reactor* EndTransfer(CallContext*,
                       const dfl::control::v1::EndTransferRequest*,
                       dfl::control::v1::EndTransferResponse*) override;
  Reactor* PutRecord(CallContext*, const dfl::control::v1::PutRecordRequest*,
                     dfl::control::v1::PutRecordResponse*) override;
  Reactor* ListRecords(CallContext*,
                       const dfl::control::v1::ListRecordsRequest*,
                       dfl::control::v1::ListRecordsResponse*) override;

  // Answers at once.
  static Reactor* Now(CallContext* context, const absl::Status& status);
  // The same for a call that changes something.
  Reactor* NowAudited(CallContext* context, std::string what,
                      const absl::Status& status);
  // Answers later; `what` = "" is not audited.
  std::shared_ptr<PendingCalls::Call> Later(CallContext* context,
                                            Reactor* reactor, std::string what);
  std::string Who(CallContext* context) const;
  Caller CallerOf(CallContext* context) const;

  Backend& backend_;
  const ControlServerOptions& options_;
  const std::function<std::string(const std::string& peer)> name_peer_;
  PendingCalls pending_;
  // Shared with answers that come after the end.
  std::shared_ptr<TokenFiles> token_files_;
  WatchHub watches_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_SERVICE_H_
