#include "client/control_client.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "client/calls.h"
#include "client/file_parts.h"
#include "client/person.h"
#include "client/proto_types.h"
#include "client/target.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl {
namespace client {
namespace {

namespace pb = dfl::control::v1;

class GrpcControlClient : public ControlClient {
 public:
  GrpcControlClient(Target target, ClientOptions options)
      : calls_(std::move(target), std::move(options)) {}

  const std::string& target() const override { return calls_.target(); }

  absl::StatusOr<client::Version> Version() override {
    pb::GetVersionResponse response;
    absl::Status status =
        calls_.Repeat(&Stub::GetVersion, pb::GetVersionRequest(), response);
    if (!status.ok()) return status;
    client::Version out;
    out.version = response.version();
    out.control_protocol = response.control_protocol_version();
    out.peer_protocol = response.peer_protocol_version();
    out.oldest_peer_protocol = response.oldest_peer_protocol_version() != 0
                                   ? response.oldest_peer_protocol_version()
                                   : response.peer_protocol_version();
    out.node = response.node();
    out.libraries.assign(response.libraries().begin(),
                         response.libraries().end());
    out.cluster = response.cluster();
    out.insecure_cluster = response.insecure_cluster();
    return out;
  }

  absl::StatusOr<DaemonStatus> Status() override {
    pb::GetStatusResponse response;
    absl::Status status =
        calls_.Repeat(&Stub::GetStatus, pb::GetStatusRequest(), response);
    if (!status.ok()) return status;
    return FromProto(response.status());
  }

  absl::Status Watch(absl::Duration interval,
                     std::function<bool(const WatchUpdate&)> on_update,
                     std::function<bool()> stop_requested) override {
    pb::WatchRequest request;
    request.set_interval_seconds(absl::ToDoubleSeconds(interval));
    StreamLimits limits;
    limits.first = calls_.timeout();
    // The daemon has bounds of its own for the interval.
    limits.next = std::clamp(interval, absl::Seconds(1), absl::Hours(1)) +
                  calls_.timeout();
    limits.endless = true;
    return calls_.Stream<pb::WatchRequest, pb::WatchResponse>(
        &Stub::Watch, request, limits,
        [&](const pb::WatchResponse& response) {
          return on_update(FromProto(response));
        },
        stop_requested);
  }

  absl::StatusOr<PlanDocument> Plan() override { return PastPlan(0); }

  absl::StatusOr<PlanDocument> PastPlan(uint64_t version) override {
    pb::GetPlanRequest request;
    request.set_version(version);
    pb::GetPlanResponse response;
    absl::Status status = calls_.Repeat(&Stub::GetPlan, request, response);
    if (!status.ok()) return status;
    PlanDocument out;
    out.yaml = response.yaml();
    out.version = response.version();
    out.version_in_force = response.version_in_force();
    out.run_id = response.run_id();
    out.kept_versions.assign(response.kept_versions().begin(),
                             response.kept_versions().end());
    return out;
  }

  absl::StatusOr<ApplyPlanResult> ApplyPlan(
      const ApplyPlanOptions& options) override {
    pb::ApplyPlanRequest request;
    request.set_yaml(options.yaml);
    request.set_record(options.record);
    if (options.expected_version.has_value()) {
      request.set_expected_version(*options.expected_version);
    }
    request.set_dry_run(options.dry_run);
    pb::ApplyPlanResponse response;
    absl::Status status =
        options.dry_run ? calls_.Repeat(&Stub::ApplyPlan, request, response)
                        : calls_.Once(&Stub::ApplyPlan, request, response);
    if (!status.ok()) return status;
    ApplyPlanResult out;
    out.version = response.version();
    out.run_id = response.run_id();
    out.warnings.assign(response.warnings().begin(), response.warnings().end());
    if (response.has_facts()) out.facts = FromProto(response.facts());
    out.unchanged = response.unchanged();
    return out;
  }

  absl::StatusOr<NodeData> Data(const std::string& yaml) override {
    pb::GetDataRequest request;
    request.set_yaml(yaml);
    pb::GetDataResponse response;
    absl::Status status = calls_.Repeat(&Stub::GetData, request, response);
    if (!status.ok()) return status;
    return FromProto(response);
  }

  absl::StatusOr<client::PutRecordResult> PutRecord(
      const std::string& record) override {
    pb::PutRecordRequest request;
    request.set_record(record);
    pb::PutRecordResponse response;
    absl::Status status = calls_.Repeat(&Stub::PutRecord, request, response);
    if (!status.ok()) return status;
    return client::PutRecordResult{response.unchanged()};
  }

  absl::StatusOr<std::vector<RecordInfo>> ListRecords() override {
    pb::ListRecordsResponse response;
    absl::Status status =
        calls_.Repeat(&Stub::ListRecords, pb::ListRecordsRequest(), response);
    if (!status.ok()) return status;
    std::vector<RecordInfo> out;
    for (const pb::RecordInfo& record : response.records()) {
      out.push_back(FromProto(record));
    }
    return out;
  }

  absl::StatusOr<Phase> Train(TrainAction action) override {
    pb::TrainRequest request;
    switch (action) {
      case TrainAction::kStart:
        request.set_action(pb::TRAIN_ACTION_START);
        break;
      case TrainAction::kPause:
        request.set_action(pb::TRAIN_ACTION_PAUSE);
        break;
      case TrainAction::kResume:
        request.set_action(pb::TRAIN_ACTION_RESUME);
        break;
      case TrainAction::kStop:
        request.set_action(pb::TRAIN_ACTION_STOP);
        break;
    }
    pb::TrainResponse response;
    absl::Status status = calls_.Once(&Stub::Train, request, response);
    if (!status.ok()) return status;
    return FromProto(response.phase());
  }

  absl::StatusOr<client::Peers> Peers() override {
    pb::ListPeersResponse response;
    absl::Status status =
        calls_.Repeat(&Stub::ListPeers, pb::ListPeersRequest(), response);
    if (!status.ok()) return status;
    client::Peers out;
    for (const pb::PeerAddress& address : response.addresses()) {
      out.addresses.push_back(FromProto(address));
    }
    for (const pb::PeerStatus& peer : response.peers()) {
      out.peers.push_back(FromProto(peer));
    }
    return out;
  }

  absl::StatusOr<bool> AddPeer(const std::string& address) override {
    pb::AddPeerRequest request;
    request.set_address(address);
    pb::AddPeerResponse response;
    absl::Status status = calls_.Once(&Stub::AddPeer, request, response);
    if (!status.ok()) return status;
    return !response.already_there();
  }

  absl::Status RemovePeer(const std::string& address) override {
    pb::RemovePeerRequest request;
    request.set_address(address);
    pb::RemovePeerResponse response;
    return calls_.Once(&Stub::RemovePeer, request, response);
  }

  absl::StatusOr<MemberTable> Members(
      const MemberSelection& selection) override {
    pb::ListMembersRequest request;
    ToProto(selection, *request.mutable_selection());
    pb::ListMembersResponse response;
    absl::Status status = calls_.Repeat(&Stub::ListMembers, request, response);
    if (!status.ok()) return status;
    return FromProto(response);
  }

  absl::Status AskMembers(const AskOptions& options,
                          std::function<bool(const MemberAnswer&)> on_answer,
                          std::function<bool()> stop_requested) override {
    pb::AskMembersRequest request;
    ToProto(options.selection, *request.mutable_selection());
    request.set_timeout_seconds(absl::ToDoubleSeconds(options.within));
    StreamLimits limits;
    // The slowest may be the only one, and so the first.
    limits.first = calls_.timeout() + options.within;
    limits.next = limits.first;
    return calls_.Stream<pb::AskMembersRequest, pb::AskMembersResponse>(
        &Stub::AskMembers, request, limits,
        [&](const pb::AskMembersResponse& response) {
          return on_answer(FromProto(response));
        },
        stop_requested);
  }

  absl::StatusOr<MemberPing> Ping(const std::string& node,
                                  absl::Duration within) override {
    pb::PingMemberRequest request;
    request.set_node(node);
    request.set_timeout_seconds(absl::ToDoubleSeconds(within));
    pb::PingMemberResponse response;
    absl::Status status =
        calls_.Repeat(&Stub::PingMember, request, response, within);
    if (!status.ok()) return status;
    return MemberPing{absl::Seconds(response.round_trip_seconds()),
                      response.hops()};
  }

  absl::StatusOr<EventList> Events(const EventFilter& filter) override {
    pb::ListEventsRequest request;
    request.set_limit(filter.limit);
    for (const std::string& name : filter.kinds) {
      const absl::StatusOr<pb::EventKind> kind = EventKindOf(name);
      if (!kind.ok()) return kind.status();
      request.add_kinds(*kind);
    }
    pb::ListEventsResponse response;
    absl::Status status = calls_.Repeat(&Stub::ListEvents, request, response);
    if (!status.ok()) return status;
    return FromProto(response);
  }

  absl::StatusOr<std::vector<Setting>> Settings() override {
    pb::GetSettingsResponse response;
    absl::Status status =
        calls_.Repeat(&Stub::GetSettings, pb::GetSettingsRequest(), response);
    if (!status.ok()) return status;
    std::vector<Setting> out;
    for (const pb::Setting& setting : response.settings()) {
      out.push_back({setting.key(), setting.value(), setting.origin()});
    }
    return out;
  }

  absl::StatusOr<std::string> Metrics() override {
    pb::GetMetricsResponse response;
    absl::Status status =
        calls_.Repeat(&Stub::GetMetrics, pb::GetMetricsRequest(), response);
    if (!status.ok()) return status;
    return response.text();
  }

  absl::StatusOr<LogList> Log(const LogFilter& filter) override {
    pb::GetLogRequest request;
    request.set_after(filter.after);
    request.set_limit(filter.limit);
    request.set_level(static_cast<pb::LogLevel>(filter.level));
    pb::GetLogResponse response;
    absl::Status status = calls_.Repeat(&Stub::GetLog, request, response);
    if (!status.ok()) return status;
    return FromProto(response);
  }

  absl::StatusOr<LogLevels> SetLogLevel(LogLevel level,
                                        absl::Duration time) override {
    pb::SetLogLevelRequest request;
    request.set_level(static_cast<pb::LogLevel>(level));
    request.set_seconds(absl::ToDoubleSeconds(time));
    pb::SetLogLevelResponse response;
    absl::Status status = calls_.Repeat(&Stub::SetLogLevel, request, response);
    if (!status.ok()) return status;
    return LogLevels{FromProto(response.level()),
                     FromProto(response.settings_level())};
  }

  absl::StatusOr<Diagnosis> Diagnose() override {
    pb::DiagnoseResponse response;
    absl::Status status =
        calls_.Repeat(&Stub::Diagnose, pb::DiagnoseRequest(), response);
    if (!status.ok()) return status;
    return FromProto(response);
  }

  absl::StatusOr<ExportResult> ExportModel(
      ModelFormat format,
      std::function<absl::Status(absl::string_view data, int64_t total_bytes)>
          write) override {
    pb::BeginExportRequest begin;
    begin.set_format(OnWire(format));
    pb::BeginExportResponse opened;
    absl::Status status = calls_.Once(&Stub::BeginExport, begin, opened);
    if (!status.ok()) return status;
    const TransferEnd end(calls_, opened.token());
    status = ReadFile(calls_, opened.token(), opened.total_bytes(), write);
    if (!status.ok()) return status;
    return ExportResult{opened.total_bytes(), opened.step(),
                        opened.description()};
  }

  absl::StatusOr<client::ImportResult> ImportModel(
      ModelFormat format, int64_t total_bytes,
      std::function<absl::StatusOr<std::string>(int64_t offset,
                                                int64_t max_bytes)>
          read,
      const ImportOptions& options) override {
    pb::BeginImportRequest begin;
    begin.set_format(OnWire(format));
    begin.set_total_bytes(total_bytes);
    for (const std::string& pattern : options.only) begin.add_only(pattern);
    begin.set_init_missing(options.init_missing);
    begin.set_strip_prefix(options.strip_prefix);
    begin.set_other_names(options.other_names);
    pb::BeginImportResponse opened;
    absl::Status status = calls_.Once(&Stub::BeginImport, begin, opened);
    if (!status.ok()) return status;
    const TransferEnd end(calls_, opened.token());
    status = WriteFile(calls_, opened.token(), total_bytes, read);
    if (!status.ok()) return status;
    pb::CommitImportRequest commit;
    commit.set_token(opened.token());
    pb::CommitImportResponse committed;
    status = calls_.Once(&Stub::CommitImport, commit, committed);
    if (!status.ok()) return status;
    return client::ImportResult{
        committed.parameter_count(),
        committed.step(),
        {committed.notes().begin(), committed.notes().end()}};
  }

  absl::StatusOr<CheckpointList> Checkpoints() override {
    pb::ListCheckpointsResponse response;
    absl::Status status = calls_.Repeat(&Stub::ListCheckpoints,
                                        pb::ListCheckpointsRequest(), response);
    if (!status.ok()) return status;
    return FromProto(response);
  }

  absl::StatusOr<CheckpointInfo> SaveCheckpoint() override {
    pb::SaveCheckpointResponse response;
    absl::Status status = calls_.Once(&Stub::SaveCheckpoint,
                                      pb::SaveCheckpointRequest(), response);
    if (!status.ok()) return status;
    return FromProto(response.checkpoint());
  }

  absl::StatusOr<CheckpointInfo> ExportCheckpoint(
      std::function<absl::Status(absl::string_view data, int64_t total_bytes)>
          write) override {
    pb::BeginCheckpointExportResponse opened;
    absl::Status status =
        calls_.Once(&Stub::BeginCheckpointExport,
                    pb::BeginCheckpointExportRequest(), opened);
    if (!status.ok()) return status;
    const TransferEnd end(calls_, opened.token());
    status = ReadFile(calls_, opened.token(), opened.total_bytes(), write);
    if (!status.ok()) return status;
    return FromProto(opened.checkpoint());
  }

  absl::StatusOr<RestoreResult> RestoreCheckpoint(
      int64_t total_bytes,
      std::function<absl::StatusOr<std::string>(int64_t offset,
                                                int64_t max_bytes)>
          read,
      const RestoreOptions& options) override {
    pb::BeginRestoreRequest begin;
    begin.set_total_bytes(total_bytes);
    begin.set_other_version(options.other_version);
    pb::BeginRestoreResponse opened;
    absl::Status status = calls_.Once(&Stub::BeginRestore, begin, opened);
    if (!status.ok()) return status;
    const TransferEnd end(calls_, opened.token());
    status = WriteFile(calls_, opened.token(), total_bytes, read);
    if (!status.ok()) return status;
    pb::CommitRestoreRequest commit;
    commit.set_token(opened.token());
    pb::CommitRestoreResponse committed;
    status = calls_.Once(&Stub::CommitRestore, commit, committed);
    if (!status.ok()) return status;
    return RestoreResult{FromProto(committed.checkpoint()),
                         FromProto(committed.phase())};
  }

 private:
  static pb::ModelFormat OnWire(ModelFormat format) {
    return format == ModelFormat::kTorchScript ? pb::MODEL_FORMAT_TORCHSCRIPT
                                               : pb::MODEL_FORMAT_SAFETENSORS;
  }

  Calls calls_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlClient>> ControlClient::Connect(
    absl::string_view target, ClientOptions options) {
  absl::StatusOr<Target> parsed = ParseTarget(target);
  if (!parsed.ok()) return parsed.status();
  return std::unique_ptr<ControlClient>(std::make_unique<GrpcControlClient>(
      *std::move(parsed), std::move(options)));
}

absl::StatusOr<ClientIdentity> ReadIdentity(const std::string& folder) {
  absl::StatusOr<tls::Credentials> person = LoadPerson(folder, absl::Now());
  if (!person.ok()) return person.status();
  return ClientIdentity{person->bundle_pem, person->chain_pem, person->key_pem};
}

}  // namespace client
}  // namespace dfl
