#include "daemon/control/node_calls.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/status_macros.h"
#include "daemon/control/data_proto.h"
#include "daemon/control/status_proto.h"
#include "dfl/record/v1/record.pb.h"

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

// A caller's address, kept short and printable for messages and the log.
std::string AuditText(absl::string_view text) {
  return std::string(text.substr(0, 200));
}

const char* Name(record::v1::RecordKind kind) {
  switch (kind) {
    case record::v1::RECORD_KIND_PLAN:
      return "plan";
    case record::v1::RECORD_KIND_PHASE:
      return "phase";
    case record::v1::RECORD_KIND_BAN:
      return "ban";
    case record::v1::RECORD_KIND_DRAIN:
      return "drain";
    case record::v1::RECORD_KIND_LABELS:
      return "labels";
    default:
      return "of an unknown kind";
  }
}

// For the audit log, what a record says of itself. Whether that is true is in
// the result of the call.
std::string RecordText(const std::string& bytes) {
  record::v1::SignedRecord record;
  record::v1::RecordBody body;
  if (!record.ParseFromString(bytes) || !body.ParseFromString(record.body())) {
    return "a record that cannot be read";
  }
  return absl::StrCat(
      "record ", Name(body.kind()), " ", body.counter(),
      body.subject().empty() ? "" : " of ", AuditText(body.subject()),
      record.signature().empty() ? ", not signed, as " : ", signed as ",
      AuditText(body.author()));
}

}  // namespace

NodeCalls::NodeCalls(Backend& backend, Answers& answers, bool signed_orders)
    : backend_(backend), answers_(answers), signed_orders_(signed_orders) {}

Reactor* NodeCalls::GetVersion(const Call& call, const pb::GetVersionRequest*,
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
  response->set_insecure_cluster(info.insecure_cluster);
  return Answers::Now(call, absl::OkStatus());
}

Reactor* NodeCalls::GetStatus(const Call& call, const pb::GetStatusRequest*,
                              pb::GetStatusResponse* response) {
  ToProto(backend_.Status(), *response->mutable_status());
  return Answers::Now(call, absl::OkStatus());
}

Reactor* NodeCalls::GetPlan(const Call& call, const pb::GetPlanRequest* request,
                            pb::GetPlanResponse* response) {
  PlanDocument plan;
  if (request->version() == 0) {
    plan = backend_.Plan();
  } else {
    absl::StatusOr<PlanDocument> past = backend_.PastPlan(request->version());
    if (!past.ok()) return Answers::Now(call, past.status());
    plan = *std::move(past);
  }
  response->set_yaml(std::move(plan.yaml));
  response->set_version(plan.version);
  response->set_version_in_force(plan.version_in_force);
  response->set_run_id(plan.run_id);
  for (const uint64_t version : plan.kept_versions) {
    response->add_kept_versions(version);
  }
  return Answers::Now(call, absl::OkStatus());
}

Reactor* NodeCalls::ApplyPlan(const Call& call,
                              const pb::ApplyPlanRequest* request,
                              pb::ApplyPlanResponse* response) {
  const std::string what =
      request->record().empty()
          ? "apply a plan"
          : absl::StrCat("apply ", RecordText(request->record()));
  const absl::Status checked = CheckPlanRequest(
      *request, signed_orders_ || !backend_.Version().cluster.empty());
  if (!checked.ok()) return answers_.NowAudited(call, what, checked);

  ApplyPlanOptions options;
  options.yaml = request->yaml();
  options.record = request->record();
  if (request->has_expected_version()) {
    options.expected_version = request->expected_version();
  }
  options.dry_run = request->dry_run();
  options.caller = call.caller;
  Reactor* reactor = call.context->DefaultReactor();
  auto later = request->dry_run() ? answers_.Later(call, reactor, "")
                                  : answers_.LaterOrder(call, reactor, what);
  options.begin = [later] { return later->Begin(); };
  backend_.ApplyPlan(std::move(options),
                     [later, response](absl::StatusOr<ApplyPlanResult> result) {
                       if (!later->Take()) return;
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
                       later->Finish(result.status());
                     });
  return reactor;
}

Reactor* NodeCalls::GetData(const Call& call, const pb::GetDataRequest* request,
                            pb::GetDataResponse* response) {
  if (!request->yaml().empty()) {
    if (call.caller.role < Role::kOperator) {
      return Answers::Now(
          call, absl::PermissionDeniedError(absl::StrCat(
                    "you are ", call.caller.role == Role::kNone ? "" : "a ",
                    Name(call.caller.role),
                    ", and only an operator may have a node look at a plan's "
                    "model; ask without a plan")));
    }
    const absl::Status checked = CheckPlanText(request->yaml());
    if (!checked.ok()) return Answers::Now(call, checked);
  }
  Reactor* reactor = call.context->DefaultReactor();
  auto later = answers_.Later(call, reactor, "");
  response->set_node(backend_.Version().node.name());
  backend_.GetData(
      request->yaml(), [later] { return later->Begin(); },
      [later, response](absl::StatusOr<NodeData> data) {
        if (!later->Take()) return;
        if (data.ok()) ToProto(*data, *response);
        later->Finish(data.status());
      });
  return reactor;
}

Reactor* NodeCalls::Train(const Call& call, const pb::TrainRequest* request,
                          pb::TrainResponse* response) {
  const std::optional<TrainAction> action = FromProto(request->action());
  if (!action.has_value()) {
    return answers_.NowAudited(
        call, "train",
        absl::InvalidArgumentError(
            absl::StrCat("action: ", static_cast<int>(request->action()),
                         " is unknown; allowed: start, pause, resume, stop")));
  }
  Reactor* reactor = call.context->DefaultReactor();
  auto later =
      answers_.LaterOrder(call, reactor, absl::StrCat("train ", Name(*action)));
  backend_.Train(
      *action, [later] { return later->Begin(); },
      [later, response](absl::StatusOr<ports::Phase> phase) {
        if (!later->Take()) return;
        if (phase.ok()) response->set_phase(ToProto(*phase));
        later->Finish(phase.status());
      });
  return reactor;
}

Reactor* NodeCalls::ListPeers(const Call& call, const pb::ListPeersRequest*,
                              pb::ListPeersResponse* response) {
  for (const PeerAddress& address : backend_.Peers()) {
    ToProto(address, *response->add_addresses());
  }
  for (const runtime::PeerStatus& peer : backend_.Status().node.peers) {
    ToProto(peer, *response->add_peers());
  }
  return Answers::Now(call, absl::OkStatus());
}

Reactor* NodeCalls::AddPeer(const Call& call, const pb::AddPeerRequest* request,
                            pb::AddPeerResponse* response) {
  absl::Status status = backend_.AddPeer(request->address());
  if (absl::IsAlreadyExists(status)) {
    response->set_already_there(true);
    status = absl::OkStatus();
  }
  return answers_.NowAudited(
      call, absl::StrCat("add peer ", AuditText(request->address())), status);
}

Reactor* NodeCalls::RemovePeer(const Call& call,
                               const pb::RemovePeerRequest* request,
                               pb::RemovePeerResponse*) {
  return answers_.NowAudited(
      call, absl::StrCat("remove peer ", AuditText(request->address())),
      backend_.RemovePeer(request->address()));
}

Reactor* NodeCalls::GetSettings(const Call& call, const pb::GetSettingsRequest*,
                                pb::GetSettingsResponse* response) {
  for (Setting& setting : backend_.Settings()) {
    pb::Setting& out = *response->add_settings();
    out.set_key(std::move(setting.key));
    out.set_value(std::move(setting.value));
    out.set_origin(std::move(setting.origin));
  }
  return Answers::Now(call, absl::OkStatus());
}

Reactor* NodeCalls::PutRecord(const Call& call,
                              const pb::PutRecordRequest* request,
                              pb::PutRecordResponse* response) {
  const std::string what =
      absl::StrCat("bring ", RecordText(request->record()));
  const absl::Status checked = CheckRecordSize(request->record());
  if (!checked.ok()) return answers_.NowAudited(call, what, checked);
  Reactor* reactor = call.context->DefaultReactor();
  auto later = answers_.Later(call, reactor, what);
  backend_.PutRecord(request->record(), call.caller,
                     [later, response](absl::StatusOr<PutRecordResult> result) {
                       if (!later->Take()) return;
                       if (result.ok()) {
                         response->set_unchanged(result->unchanged);
                       }
                       later->Finish(result.status());
                     });
  return reactor;
}

Reactor* NodeCalls::ListRecords(const Call& call, const pb::ListRecordsRequest*,
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
  return Answers::Now(call, absl::OkStatus());
}

}  // namespace dfl::control
