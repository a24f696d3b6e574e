#include "daemon/control/service.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/control/status_proto.h"
#include "proto/grpc_status.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;

constexpr size_t kMaxPlanBytes = size_t{8} << 20;
constexpr size_t kMaxRecordBytes = kMaxPlanBytes + (size_t{64} << 10);

std::optional<TrainAction> FromProto(pb::TrainAction action) {
  switch (action) {
    case pb::TRAIN_ACTION_START:
      return TrainAction::kStart;
    case pb::TRAIN_ACTION_PAUSE:
      return TrainAction::kPause;
    case pb::TRAIN_ACTION_RESUME:
      return TrainAction::kResume;
    case pb::TRAIN_ACTION_STOP:
      return TrainAction::kStop;
    default:
      return std::nullopt;
  }
}

const char* Name(TrainAction action) {
  switch (action) {
    case TrainAction::kStart:
      return "start";
    case TrainAction::kPause:
      return "pause";
    case TrainAction::kResume:
      return "resume";
    case TrainAction::kStop:
      return "stop";
  }
  return "?";
}

absl::StatusOr<ModelFileFormat> FromProto(pb::ModelFormat format) {
  switch (format) {
    case pb::MODEL_FORMAT_SAFETENSORS:
      return ModelFileFormat::kSafetensors;
    case pb::MODEL_FORMAT_TORCHSCRIPT:
      return ModelFileFormat::kTorchScript;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("format: ", static_cast<int>(format),
                       " is unknown; allowed: safetensors, torchscript"));
  }
}

absl::Status CheckRecordSize(const std::string& record) {
  if (record.empty()) {
    return absl::InvalidArgumentError("the record is empty; send a signed one");
  }
  if (record.size() > kMaxRecordBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the record has ", record.size(),
                     " bytes; allowed: up to ", kMaxRecordBytes));
  }
  return absl::OkStatus();
}

absl::Status CheckPlanText(const std::string& yaml) {
  if (yaml.empty()) {
    return absl::InvalidArgumentError(
        "the plan is empty; send the whole document");
  }
  if (yaml.size() > kMaxPlanBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the plan has ", yaml.size(),
                                                   " bytes; allowed: up to ",
                                                   kMaxPlanBytes));
  }
  return absl::OkStatus();
}

// A plan comes as text or as a record. Where orders must be signed, only a
// question may come as text.
absl::Status CheckPlanRequest(const pb::ApplyPlanRequest& request,
                              bool must_be_signed) {
  if (request.record().empty()) {
    DFL_RETURN_IF_ERROR(CheckPlanText(request.yaml()));
    if (!must_be_signed || request.dry_run()) return absl::OkStatus();
    return absl::PermissionDeniedError(
        "the plan is not signed: a plan concerns the whole network, so this "
        "node takes it from nobody without an operator's signature, also not "
        "from root; apply it with `dflctl plan apply FILE` where the "
        "operator's "
        "certificate and key are, and name their folder with --identity");
  }
  if (!request.yaml().empty()) {
    return absl::InvalidArgumentError(
        "yaml and record are both set; a signed plan is in the record alone");
  }
  return CheckRecordSize(request.record());
}

absl::Duration WatchInterval(double seconds) {
  if (!(seconds > 0)) return absl::Seconds(1);
  return absl::Seconds(std::clamp(seconds, 0.1, 3600.0));
}

// A caller's address, kept short and printable for messages and the log.
std::string AuditText(absl::string_view text) {
  return std::string(text.substr(0, 200));
}

}  // namespace

Service::Service(Backend& backend, Timers& timers,
                 const ControlServerOptions& options,
                 std::function<std::string(const std::string& peer)> name_peer)
    : backend_(backend),
      options_(options),
      name_peer_(std::move(name_peer)),
      pending_(timers),
      token_files_(std::make_shared<TokenFiles>(
          timers, options.transfer_idle_time, options.max_transfers)),
      watches_(backend, timers, options.max_watchers) {}

void Service::Close() {
  watches_.Stop();
  pending_.Close();
  token_files_->Clear();
}

std::string Service::Who(CallContext* context) const {
  return name_peer_(context->peer());
}

Caller Service::CallerOf(CallContext* context) const {
  return {Who(context), Role::kAdmin, false};
}

Service::Reactor* Service::Now(CallContext* context,
                               const absl::Status& status) {
  Reactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

Service::Reactor* Service::NowAudited(CallContext* context, std::string what,
                                      const absl::Status& status) {
  if (options_.audit) options_.audit({Who(context), std::move(what), status});
  return Now(context, status);
}

std::shared_ptr<PendingCalls::Call> Service::Later(CallContext* context,
                                                   Reactor* reactor,
                                                   std::string what) {
  const absl::Duration left =
      absl::FromChrono(context->deadline() - std::chrono::system_clock::now());
  std::function<void(const absl::Status&)> on_finish;
  if (options_.audit && !what.empty()) {
    on_finish = [this, who = Who(context),
                 what = std::move(what)](const absl::Status& status) {
      options_.audit({who, what, status});
    };
  }
  return pending_.Add(reactor, std::min(left, options_.max_call_time),
                      std::move(on_finish));
}

Service::Reactor* Service::GetVersion(CallContext* context,
                                      const pb::GetVersionRequest*,
                                      pb::GetVersionResponse* response) {
  const VersionInfo info = backend_.Version();
  response->set_version(info.version);
  response->set_control_protocol_version(kControlProtocolVersion);
  response->set_peer_protocol_version(info.peer_protocol);
  response->set_oldest_peer_protocol_version(info.oldest_peer_protocol);
  response->set_node(info.node.name());
  for (const std::string& library : info.libraries) {
    response->add_libraries(library);
  }
  response->set_cluster(info.cluster);
  return Now(context, absl::OkStatus());
}

Service::Reactor* Service::GetStatus(CallContext* context,
                                     const pb::GetStatusRequest*,
                                     pb::GetStatusResponse* response) {
  ToProto(backend_.Status(), *response->mutable_status());
  return Now(context, absl::OkStatus());
}

grpc::ServerWriteReactor<pb::WatchResponse>* Service::Watch(
    CallContext*, const pb::WatchRequest* request) {
  return watches_.Open(WatchInterval(request->interval_seconds()));
}

Service::Reactor* Service::GetPlan(CallContext* context,
                                   const pb::GetPlanRequest*,
                                   pb::GetPlanResponse* response) {
  PlanDocument plan = backend_.Plan();
  response->set_yaml(std::move(plan.yaml));
  response->set_version(plan.version);
  response->set_version_in_force(plan.version_in_force);
  response->set_run_id(plan.run_id);
  return Now(context, absl::OkStatus());
}

Service::Reactor* Service::ApplyPlan(CallContext* context,
                                     const pb::ApplyPlanRequest* request,
                                     pb::ApplyPlanResponse* response) {
  const std::string what =
      request->dry_run() ? "" : std::string("apply a plan");
  const absl::Status checked =
      CheckPlanRequest(*request, !backend_.Version().cluster.empty());
  if (!checked.ok()) return NowAudited(context, "apply a plan", checked);

  ApplyPlanOptions options;
  options.yaml = request->yaml();
  options.record = request->record();
  if (request->has_expected_version()) {
    options.expected_version = request->expected_version();
  }
  options.dry_run = request->dry_run();
  options.caller = CallerOf(context);
  Reactor* reactor = context->DefaultReactor();
  auto call = Later(context, reactor, what);
  backend_.ApplyPlan(std::move(options),
                     [call, response](absl::StatusOr<ApplyPlanResult> result) {
                       if (!call->Take()) return;
                       if (result.ok()) {
                         response->set_version(result->version);
                         response->set_run_id(result->run_id);
                         for (const std::string& warning : result->warnings) {
                           response->add_warnings(warning);
                         }
                         if (result->facts.has_value()) {
                           ToProto(*result->facts, *response->mutable_facts());
                         }
                         response->set_unchanged(result->unchanged);
                       }
                       call->Finish(result.status());
                     });
  return reactor;
}

Service::Reactor* Service::Train(CallContext* context,
                                 const pb::TrainRequest* request,
                                 pb::TrainResponse* response) {
  const std::optional<TrainAction> action = FromProto(request->action());
  if (!action.has_value()) {
    return NowAudited(context, "train",
                      absl::InvalidArgumentError(absl::StrCat(
                          "action: ", static_cast<int>(request->action()),
                          " is unknown; allowed: start, pause, resume, stop")));
  }
  Reactor* reactor = context->DefaultReactor();
  auto call = Later(context, reactor, absl::StrCat("train ", Name(*action)));
  backend_.Train(*action, [call, response](absl::StatusOr<ports::Phase> phase) {
    if (!call->Take()) return;
    if (phase.ok()) response->set_phase(ToProto(*phase));
    call->Finish(phase.status());
  });
  return reactor;
}

Service::Reactor* Service::ListPeers(CallContext* context,
                                     const pb::ListPeersRequest*,
                                     pb::ListPeersResponse* response) {
  for (const PeerAddress& address : backend_.Peers()) {
    ToProto(address, *response->add_addresses());
  }
  for (const runtime::PeerStatus& peer : backend_.Status().node.peers) {
    ToProto(peer, *response->add_peers());
  }
  return Now(context, absl::OkStatus());
}

Service::Reactor* Service::AddPeer(CallContext* context,
                                   const pb::AddPeerRequest* request,
                                   pb::AddPeerResponse* response) {
  absl::Status status = backend_.AddPeer(request->address());
  if (absl::IsAlreadyExists(status)) {
    response->set_already_there(true);
    status = absl::OkStatus();
  }
  return NowAudited(context,
                    absl::StrCat("add peer ", AuditText(request->address())),
                    status);
}

Service::Reactor* Service::RemovePeer(CallContext* context,
                                      const pb::RemovePeerRequest* request,
                                      pb::RemovePeerResponse*) {
  return NowAudited(context,
                    absl::StrCat("remove peer ", AuditText(request->address())),
                    backend_.RemovePeer(request->address()));
}

Service::Reactor* Service::GetSettings(CallContext* context,
                                       const pb::GetSettingsRequest*,
                                       pb::GetSettingsResponse* response) {
  for (Setting& setting : backend_.Settings()) {
    pb::Setting& out = *response->add_settings();
    out.set_key(std::move(setting.key));
    out.set_value(std::move(setting.value));
    out.set_origin(std::move(setting.origin));
  }
  return Now(context, absl::OkStatus());
}

Service::Reactor* Service::BeginExport(CallContext* context,
                                       const pb::BeginExportRequest* request,
                                       pb::BeginExportResponse* response) {
  const absl::StatusOr<ModelFileFormat> format = FromProto(request->format());
  if (!format.ok()) return Now(context, format.status());
  const absl::Status room = token_files_->CheckRoom();
  if (!room.ok()) return Now(context, room);
  Reactor* reactor = context->DefaultReactor();
  auto call = Later(context, reactor, "");
  backend_.BeginExport(
      *format, [call, response, files = token_files_](
                   absl::StatusOr<std::unique_ptr<ModelSource>> source) {
        // Whoever gave up before the copy was ready does not want it.
        if (!call->Take()) return;
        if (!source.ok()) return call->Finish(source.status());
        response->set_total_bytes((*source)->total_bytes());
        response->set_step((*source)->step());
        absl::StatusOr<std::string> token =
            files->AddExport(*std::move(source));
        if (token.ok()) response->set_token(*token);
        call->Finish(token.status());
      });
  return reactor;
}

Service::Reactor* Service::ReadExport(CallContext* context,
                                      const pb::ReadExportRequest* request,
                                      pb::ReadExportResponse* response) {
  absl::StatusOr<std::string> data = token_files_->Read(
      request->token(), request->offset(), request->max_bytes());
  if (!data.ok()) return Now(context, data.status());
  response->set_data(*std::move(data));
  return Now(context, absl::OkStatus());
}

Service::Reactor* Service::BeginImport(CallContext* context,
                                       const pb::BeginImportRequest* request,
                                       pb::BeginImportResponse* response) {
  const auto begin = [&]() -> absl::Status {
    const absl::StatusOr<ModelFileFormat> format = FromProto(request->format());
    if (!format.ok()) return format.status();
    if (*format != ModelFileFormat::kSafetensors) {
      return absl::InvalidArgumentError(
          "only safetensors files are imported: a TorchScript file is code; "
          "name it in the plan's model section instead");
    }
    if (request->total_bytes() < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("total_bytes: ", request->total_bytes(),
                       " is not allowed; a model file has at least 1 byte"));
    }
    absl::Status room = token_files_->CheckRoom();
    if (!room.ok()) return room;
    absl::StatusOr<std::unique_ptr<ModelSink>> sink =
        backend_.BeginImport(*format, request->total_bytes());
    if (!sink.ok()) return sink.status();
    absl::StatusOr<std::string> token =
        token_files_->AddImport(*std::move(sink), request->total_bytes());
    if (token.ok()) response->set_token(*token);
    return token.status();
  };
  return NowAudited(
      context,
      absl::StrCat("begin an import of ", request->total_bytes(), " bytes"),
      begin());
}

Service::Reactor* Service::WriteImport(CallContext* context,
                                       const pb::WriteImportRequest* request,
                                       pb::WriteImportResponse* response) {
  const absl::StatusOr<int64_t> received =
      token_files_->Write(request->token(), request->offset(), request->data());
  if (received.ok()) response->set_received_bytes(*received);
  return Now(context, received.status());
}

Service::Reactor* Service::CommitImport(CallContext* context,
                                        const pb::CommitImportRequest* request,
                                        pb::CommitImportResponse* response) {
  absl::StatusOr<std::shared_ptr<ModelSink>> sink =
      token_files_->TakeImport(request->token());
  if (!sink.ok()) return NowAudited(context, "import a model", sink.status());
  Reactor* reactor = context->DefaultReactor();
  auto call = Later(context, reactor, "import a model");
  ModelSink& committed = **sink;
  committed.Commit([call, response, keep = *std::move(sink)](
                       absl::StatusOr<ImportResult> result) {
    if (!call->Take()) return;
    if (result.ok()) {
      response->set_parameter_count(result->parameter_count);
      response->set_step(result->step);
    }
    call->Finish(result.status());
  });
  return reactor;
}

Service::Reactor* Service::EndTransfer(CallContext* context,
                                       const pb::EndTransferRequest* request,
                                       pb::EndTransferResponse*) {
  token_files_->End(request->token());
  return Now(context, absl::OkStatus());
}

Service::Reactor* Service::PutRecord(CallContext* context,
                                     const pb::PutRecordRequest* request,
                                     pb::PutRecordResponse* response) {
  const absl::Status checked = CheckRecordSize(request->record());
  if (!checked.ok()) return NowAudited(context, "bring a record", checked);
  Reactor* reactor = context->DefaultReactor();
  auto call = Later(context, reactor, "bring a record");
  backend_.PutRecord(request->record(), CallerOf(context),
                     [call, response](absl::StatusOr<PutRecordResult> result) {
                       if (!call->Take()) return;
                       if (result.ok()) {
                         response->set_unchanged(result->unchanged);
                       }
                       call->Finish(result.status());
                     });
  return reactor;
}

Service::Reactor* Service::ListRecords(CallContext* context,
                                       const pb::ListRecordsRequest*,
                                       pb::ListRecordsResponse* response) {
  for (RecordInfo& record : backend_.ListRecords()) {
    pb::RecordInfo& out = *response->add_records();
    out.set_kind(std::move(record.kind));
    out.set_subject(std::move(record.subject));
    out.set_counter(record.counter);
    out.set_author(std::move(record.author));
    out.set_unix_nanos(absl::ToUnixNanos(record.signed_at));
    out.set_summary(std::move(record.summary));
    out.set_current(record.current);
    out.set_body_sha256(std::move(record.body_sha256));
  }
  return Now(context, absl::OkStatus());
}

}  // namespace dfl::control
