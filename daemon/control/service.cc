#include "daemon/control/service.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/grpc_status.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;

absl::Duration WatchInterval(double seconds) {
  if (!(seconds > 0)) return absl::Seconds(1);
  return absl::Seconds(std::clamp(seconds, 0.1, 3600.0));
}

}  // namespace

// A method that is not here has no handler: it fails with UNIMPLEMENTED.
class GatedService::Handlers final
    : public pb::ControlService::CallbackService {
 public:
  explicit Handlers(GatedService& service) : service_(service) {}

 private:
  using Context = grpc::CallbackServerContext;

  template <typename Calls, typename Request, typename Response>
  Reactor* Pass(Context* context, const char* method, Calls& calls,
                Reactor* (Calls::*handler)(const Call&, const Request*,
                                           Response*),
                const Request* request, Response* response) {
    absl::StatusOr<Caller> caller = service_.gate_.Enter(*context, method);
    if (!caller.ok()) return Answers::Now({context, {}}, caller.status());
    return (calls.*handler)({context, *std::move(caller)}, request, response);
  }

#define DFL_CALL(Calls, calls, Method)                                     \
  Reactor* Method(Context* context, const pb::Method##Request* request,    \
                  pb::Method##Response* response) override {               \
    return Pass(context, #Method, service_.calls, &Calls::Method, request, \
                response);                                                 \
  }
  DFL_CALL(NodeCalls, node_calls_, GetVersion)
  DFL_CALL(NodeCalls, node_calls_, GetStatus)
  DFL_CALL(NodeCalls, node_calls_, GetPlan)
  DFL_CALL(NodeCalls, node_calls_, ApplyPlan)
  DFL_CALL(NodeCalls, node_calls_, GetData)
  DFL_CALL(NodeCalls, node_calls_, Train)
  DFL_CALL(NodeCalls, node_calls_, ListPeers)
  DFL_CALL(NodeCalls, node_calls_, AddPeer)
  DFL_CALL(NodeCalls, node_calls_, RemovePeer)
  DFL_CALL(MemberCalls, member_calls_, ListMembers)
  DFL_CALL(MemberCalls, member_calls_, PingMember)
  DFL_CALL(MemberCalls, member_calls_, ListEvents)
  DFL_CALL(NodeCalls, node_calls_, GetSettings)
  DFL_CALL(TransferCalls, transfer_calls_, BeginExport)
  DFL_CALL(TransferCalls, transfer_calls_, ReadExport)
  DFL_CALL(TransferCalls, transfer_calls_, BeginImport)
  DFL_CALL(TransferCalls, transfer_calls_, WriteImport)
  DFL_CALL(TransferCalls, transfer_calls_, CommitImport)
  DFL_CALL(TransferCalls, transfer_calls_, EndTransfer)
  DFL_CALL(CheckpointCalls, checkpoint_calls_, ListCheckpoints)
  DFL_CALL(CheckpointCalls, checkpoint_calls_, SaveCheckpoint)
  DFL_CALL(CheckpointCalls, checkpoint_calls_, BeginCheckpointExport)
  DFL_CALL(CheckpointCalls, checkpoint_calls_, BeginRestore)
  DFL_CALL(CheckpointCalls, checkpoint_calls_, CommitRestore)
  DFL_CALL(NodeCalls, node_calls_, PutRecord)
  DFL_CALL(NodeCalls, node_calls_, ListRecords)
  DFL_CALL(ObserveCalls, observe_calls_, GetMetrics)
  DFL_CALL(ObserveCalls, observe_calls_, GetLog)
  DFL_CALL(ObserveCalls, observe_calls_, SetLogLevel)
  DFL_CALL(ObserveCalls, observe_calls_, Diagnose)
#undef DFL_CALL

  grpc::ServerWriteReactor<pb::WatchResponse>* Watch(
      Context* context, const pb::WatchRequest* request) override {
    const absl::StatusOr<Caller> caller =
        service_.gate_.Enter(*context, "Watch");
    if (!caller.ok()) return WatchHub::Refuse(caller.status());
    return service_.watches_.Open(WatchInterval(request->interval_seconds()),
                                  service_.gate_.Guard(*context, "Watch"));
  }

  grpc::ServerWriteReactor<pb::AskMembersResponse>* AskMembers(
      Context* context, const pb::AskMembersRequest* request) override {
    const absl::StatusOr<Caller> caller =
        service_.gate_.Enter(*context, "AskMembers");
    if (!caller.ok()) return MemberAsks::Refuse(caller.status());
    return service_.asks_.Open(*request,
                               service_.gate_.Guard(*context, "AskMembers"));
  }

  GatedService& service_;
};

GatedService::GatedService(Backend& backend, Timers& timers,
                           const Callers& callers,
                           const ControlServerOptions& options)
    : gate_(callers, options.audit),
      answers_(timers, options),
      node_calls_(backend, answers_, options.signed_orders),
      member_calls_(backend, answers_),
      transfer_calls_(backend, answers_, timers, options),
      checkpoint_calls_(backend, answers_, transfer_calls_.files()),
      observe_calls_(options.observer, answers_),
      watches_(backend, timers, options.max_watchers),
      asks_(backend, timers, options.max_asks),
      handlers_(std::make_unique<Handlers>(*this)) {}

GatedService::~GatedService() = default;

grpc::Service* GatedService::service() { return handlers_.get(); }

void GatedService::Close() {
  watches_.Stop();
  asks_.Stop();
  answers_.Close();
  transfer_calls_.Close();
}

}  // namespace dfl::control
