#include "client/control_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/person.h"
#include "client/proto_types.h"
#include "client/retry.h"
#include "client/target.h"
#include "client/tls_channel.h"
#include "daemon/threads/steady_cond_var.h"
#include "dfl/control/v1/control.grpc.pb.h"
#include "proto/grpc_status.h"

namespace dfl {
namespace client {
namespace {

// gRPC's text for a call whose own deadline has passed.
constexpr char kOwnDeadline[] = "Deadline Exceeded";

namespace pb = dfl::control::v1;

constexpr int64_t kPartBytes = int64_t{1} << 20;
constexpr int kMaxMessageBytes = 16 << 20;
constexpr absl::Duration kStopPoll = absl::Milliseconds(100);

std::chrono::system_clock::time_point After(absl::Duration time) {
  // Beyond a year is no deadline that anybody waits for.
  const absl::Duration bounded = std::min(time, absl::Hours(24 * 365));
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(
             absl::ToChronoNanoseconds(bounded));
}

// Cancels a stream when the user wants to stop, or when the first message did
// not come in time.
class Watchdog {
 public:
  Watchdog(grpc::ClientContext& context, absl::Duration first_message,
           std::function<bool()> stop_requested)
      : context_(context),
        first_by_(std::chrono::steady_clock::now() +
                  absl::ToChronoNanoseconds(
                      std::min(first_message, absl::Hours(24 * 365)))),
        stop_requested_(std::move(stop_requested)),
        thread_([this] { Run(); }) {}

  ~Watchdog() {
    {
      const absl::MutexLock lock(&mutex_);
      done_ = true;
    }
    changed_.Signal();
    thread_.join();
  }

  void MessageCame() { came_ = true; }
  bool stopped() const { return stopped_; }
  bool timed_out() const { return timed_out_; }

 private:
  void Run() {
    const absl::MutexLock lock(&mutex_);
    while (!done_) {
      if (stop_requested_ && stop_requested_()) {
        stopped_ = true;
      } else if (!came_ && std::chrono::steady_clock::now() >= first_by_) {
        timed_out_ = true;
      }
      if (stopped_ || timed_out_) {
        context_.TryCancel();
        return;
      }
      changed_.WaitFor(&mutex_, kStopPoll);
    }
  }

  grpc::ClientContext& context_;
  const std::chrono::steady_clock::time_point first_by_;
  const std::function<bool()> stop_requested_;
  absl::Mutex mutex_;
  SteadyCondVar changed_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> came_{false};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> timed_out_{false};
  std::thread thread_;
};

using Stub = pb::ControlService::Stub;

// The connection to a daemon: by TLS on the network, unless plain text is
// asked for. It is made by the first call, because that is what fails when
// there is no identity.
class Connection {
 public:
  // Both outlive it.
  Connection(const Target& target, const ClientOptions& options)
      : target_(target), options_(options) {}

  absl::StatusOr<Stub*> GetStub() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (stub_ != nullptr) return stub_.get();
    std::shared_ptr<grpc::ChannelCredentials> credentials =
        grpc::InsecureChannelCredentials();
    if (target_.socket_path.empty() && !target_.plaintext &&
        !options_.insecure) {
      if (options_.identity == nullptr) {
        return absl::UnauthenticatedError(absl::StrCat(
            target_.text,
            ": a daemon on the network is told who calls, and no identity is "
            "given; set ClientOptions::identity, or speak plain text to "
            "insecure:",
            target_.address));
      }
      absl::StatusOr<ClientIdentity> identity = options_.identity();
      if (absl::IsUnavailable(identity.status())) {
        // Not the daemon's: this machine's clock is not set.
        return absl::FailedPreconditionError(identity.status().message());
      }
      if (!identity.ok()) return identity.status();
      absl::StatusOr<TlsIdentity> made = MakeTlsIdentity(*identity, refusal_);
      if (!made.ok()) return made.status();
      credentials = made->credentials;
      identity_ = made->uri;
    }
    stub_ = pb::ControlService::NewStub(grpc::CreateCustomChannel(
        target_.address, credentials, ChannelArguments()));
    return stub_.get();
  }

  // To gRPC a daemon that we refused is one that is not there.
  absl::Status Refused(const absl::Status& status) const {
    if (!absl::IsUnavailable(status)) return status;
    const std::string why = refusal_->text();
    if (why.empty()) return status;
    return absl::UnauthenticatedError(absl::StrCat(
        target_.text, ": the daemon there is refused: ", why,
        "; is it the daemon that you mean, and is your ca.pem that of its "
        "network (`dflctl cert show`)?"));
  }

  // Ours, with TLS; "" in plain text.
  std::string identity() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return identity_;
  }

 private:
  grpc::ChannelArguments ChannelArguments() const {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    arguments.SetMaxSendMessageSize(kMaxMessageBytes);
    // Control goes straight to the named daemon, never through a proxy.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    // To gRPC this is how long one attempt to connect may take. Half of the
    // call's time: a name may have a second address.
    arguments.SetInt(
        GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
        static_cast<int>(absl::ToInt64Milliseconds(options_.timeout / 2)));
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    // A channel of one's own: a client made later tries at once.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // Retries are counted here.
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    return arguments;
  }

  const Target& target_;
  const ClientOptions& options_;
  const std::shared_ptr<Refusal> refusal_ = std::make_shared<Refusal>();
  mutable absl::Mutex mutex_;
  std::unique_ptr<Stub> stub_ ABSL_GUARDED_BY(mutex_);
  std::string identity_ ABSL_GUARDED_BY(mutex_);
};

class GrpcControlClient : public ControlClient {
 public:
  GrpcControlClient(Target target, ClientOptions options)
      : target_(std::move(target)),
        options_(std::move(options)),
        connection_(target_, options_) {}

  const std::string& target() const override { return target_.text; }

  absl::StatusOr<client::Version> Version() override {
    pb::GetVersionResponse response;
    absl::Status status =
        Repeat(&Stub::GetVersion, pb::GetVersionRequest(), response);
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
    return out;
  }

  absl::StatusOr<DaemonStatus> Status() override {
    pb::GetStatusResponse response;
    absl::Status status =
        Repeat(&Stub::GetStatus, pb::GetStatusRequest(), response);
    if (!status.ok()) return status;
    return FromProto(response.status());
  }

  absl::Status Watch(absl::Duration interval,
                     std::function<bool(const WatchUpdate&)> on_update,
                     std::function<bool()> stop_requested) override {
    pb::WatchRequest request;
    request.set_interval_seconds(absl::ToDoubleSeconds(interval));
    absl::StatusOr<Stub*> stub = connection_.GetStub();
    if (!stub.ok()) return Explain(stub.status());
    grpc::ClientContext context;
    const auto reader = (*stub)->Watch(&context, request);
    Watchdog watchdog(context, options_.timeout, std::move(stop_requested));
    pb::WatchResponse response;
    bool left = false;
    while (!left && reader->Read(&response)) {
      watchdog.MessageCame();
      left = !on_update(FromProto(response));
    }
    if (left) context.TryCancel();
    const absl::Status status = FromGrpc(reader->Finish());
    if (left || watchdog.stopped()) return absl::OkStatus();
    if (watchdog.timed_out()) return TimedOut(options_.timeout);
    // A stream has no other good end than the watcher's own.
    return Explain(status.ok() ? absl::UnavailableError("the stream ended")
                               : connection_.Refused(status));
  }

  absl::StatusOr<PlanDocument> Plan() override {
    pb::GetPlanResponse response;
    absl::Status status =
        Repeat(&Stub::GetPlan, pb::GetPlanRequest(), response);
    if (!status.ok()) return status;
    PlanDocument out;
    out.yaml = response.yaml();
    out.version = response.version();
    out.version_in_force = response.version_in_force();
    out.run_id = response.run_id();
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
    absl::Status status = options.dry_run
                              ? Repeat(&Stub::ApplyPlan, request, response)
                              : Once(&Stub::ApplyPlan, request, response);
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
    absl::Status status = Repeat(&Stub::GetData, request, response);
    if (!status.ok()) return status;
    return FromProto(response);
  }

  absl::StatusOr<client::PutRecordResult> PutRecord(
      const std::string& record) override {
    pb::PutRecordRequest request;
    request.set_record(record);
    pb::PutRecordResponse response;
    absl::Status status = Repeat(&Stub::PutRecord, request, response);
    if (!status.ok()) return status;
    return client::PutRecordResult{response.unchanged()};
  }

  absl::StatusOr<std::vector<RecordInfo>> ListRecords() override {
    pb::ListRecordsResponse response;
    absl::Status status =
        Repeat(&Stub::ListRecords, pb::ListRecordsRequest(), response);
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
    absl::Status status = Once(&Stub::Train, request, response);
    if (!status.ok()) return status;
    return FromProto(response.phase());
  }

  absl::StatusOr<client::Peers> Peers() override {
    pb::ListPeersResponse response;
    absl::Status status =
        Repeat(&Stub::ListPeers, pb::ListPeersRequest(), response);
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
    absl::Status status = Once(&Stub::AddPeer, request, response);
    if (!status.ok()) return status;
    return !response.already_there();
  }

  absl::Status RemovePeer(const std::string& address) override {
    pb::RemovePeerRequest request;
    request.set_address(address);
    pb::RemovePeerResponse response;
    return Once(&Stub::RemovePeer, request, response);
  }

  absl::StatusOr<std::vector<Setting>> Settings() override {
    pb::GetSettingsResponse response;
    absl::Status status =
        Repeat(&Stub::GetSettings, pb::GetSettingsRequest(), response);
    if (!status.ok()) return status;
    std::vector<Setting> out;
    for (const pb::Setting& setting : response.settings()) {
      out.push_back({setting.key(), setting.value(), setting.origin()});
    }
    return out;
  }

  absl::StatusOr<ExportResult> ExportModel(
      ModelFormat format,
      std::function<absl::Status(absl::string_view data, int64_t total_bytes)>
          write) override {
    pb::BeginExportRequest begin;
    begin.set_format(ToProto(format));
    pb::BeginExportResponse opened;
    absl::Status status = Once(&Stub::BeginExport, begin, opened);
    if (!status.ok()) return status;
    const TransferEnd end(*this, opened.token());
    for (int64_t offset = 0; offset < opened.total_bytes();) {
      pb::ReadExportRequest request;
      request.set_token(opened.token());
      request.set_offset(offset);
      request.set_max_bytes(kPartBytes);
      pb::ReadExportResponse part;
      status = Repeat(&Stub::ReadExport, request, part);
      if (!status.ok()) return status;
      const int64_t size = static_cast<int64_t>(part.data().size());
      if (size == 0 || size > opened.total_bytes() - offset) {
        return absl::DataLossError(absl::StrCat(
            target_.text, ": the export gave ", size, " bytes at offset ",
            offset, " of ", opened.total_bytes(), "; try again"));
      }
      status = write(part.data(), opened.total_bytes());
      if (!status.ok()) return status;
      offset += size;
    }
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
    begin.set_format(ToProto(format));
    begin.set_total_bytes(total_bytes);
    for (const std::string& pattern : options.only) begin.add_only(pattern);
    begin.set_init_missing(options.init_missing);
    begin.set_strip_prefix(options.strip_prefix);
    begin.set_other_names(options.other_names);
    pb::BeginImportResponse opened;
    absl::Status status = Once(&Stub::BeginImport, begin, opened);
    if (!status.ok()) return status;
    const TransferEnd end(*this, opened.token());
    for (int64_t offset = 0; offset < total_bytes;) {
      absl::StatusOr<std::string> data =
          read(offset, std::min(kPartBytes, total_bytes - offset));
      if (!data.ok()) return data.status();
      if (data->empty()) {
        return absl::DataLossError(
            absl::StrCat("the file ends at ", offset, " of ", total_bytes,
                         " bytes; it was changed meanwhile, try again"));
      }
      pb::WriteImportRequest request;
      request.set_token(opened.token());
      request.set_offset(offset);
      request.set_data(*std::move(data));
      pb::WriteImportResponse part;
      // The part that came last may come again.
      status = Repeat(&Stub::WriteImport, request, part);
      if (!status.ok()) return status;
      offset = part.received_bytes();
    }
    pb::CommitImportRequest commit;
    commit.set_token(opened.token());
    pb::CommitImportResponse committed;
    status = Once(&Stub::CommitImport, commit, committed);
    if (!status.ok()) return status;
    return client::ImportResult{
        committed.parameter_count(),
        committed.step(),
        {committed.notes().begin(), committed.notes().end()}};
  }

 private:
  template <typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&,
                                        Response*);

  // Frees what the daemon keeps for a transfer, whatever became of it.
  class TransferEnd {
   public:
    TransferEnd(GrpcControlClient& client, std::string token)
        : client_(client), token_(std::move(token)) {}
    ~TransferEnd() {
      pb::EndTransferRequest request;
      request.set_token(token_);
      pb::EndTransferResponse response;
      // Best effort: the daemon forgets it by itself in a minute.
      client_.Once(&Stub::EndTransfer, request, response).IgnoreError();
    }
    TransferEnd(const TransferEnd&) = delete;
    TransferEnd& operator=(const TransferEnd&) = delete;

   private:
    GrpcControlClient& client_;
    const std::string token_;
  };

  static pb::ModelFormat ToProto(ModelFormat format) {
    return format == ModelFormat::kTorchScript ? pb::MODEL_FORMAT_TORCHSCRIPT
                                               : pb::MODEL_FORMAT_SAFETENSORS;
  }

  template <typename Request, typename Response>
  absl::Status Attempt(Method<Request, Response> method, const Request& request,
                       Response& response, absl::Duration timeout) {
    absl::StatusOr<Stub*> stub = connection_.GetStub();
    if (!stub.ok()) return stub.status();
    grpc::ClientContext context;
    context.set_deadline(After(timeout));
    response.Clear();
    const absl::Time began = SteadyNow();
    absl::Status status =
        FromGrpc(((*stub)->*method)(&context, request, &response));
    // The daemon knows our deadline too. Which end notices first is a race, and
    // must not decide what the user reads.
    if (absl::IsDeadlineExceeded(status) &&
        SteadyNow() - began >= timeout * 0.9) {
      return absl::DeadlineExceededError(kOwnDeadline);
    }
    return connection_.Refused(status);
  }

  // A call that changes something.
  template <typename Request, typename Response>
  absl::Status Once(Method<Request, Response> method, const Request& request,
                    Response& response) {
    return Explain(Attempt(method, request, response, options_.timeout));
  }

  // A call that may as well be made twice.
  template <typename Request, typename Response>
  absl::Status Repeat(Method<Request, Response> method, const Request& request,
                      Response& response) {
    RetryPolicy policy;
    policy.max_attempts = std::max(options_.max_attempts, 1);
    return Explain(RetryUnavailable(
        policy, options_.timeout,
        [&](absl::Duration left) {
          return Attempt(method, request, response, left);
        },
        [] { return SteadyNow(); },
        [](absl::Duration wait) { absl::SleepFor(wait); }));
  }

  absl::Duration ConnectTimeout() const { return options_.timeout / 2; }

  absl::Status TimedOut(absl::Duration after) const {
    return absl::DeadlineExceededError(absl::StrCat(
        target_.text, ": no answer within ", absl::FormatDuration(after),
        "; is the network there slow or the daemon stuck? a longer timeout "
        "may help"));
  }

  absl::Status Explain(const absl::Status& status) const {
    switch (status.code()) {
      case absl::StatusCode::kUnavailable:
        // Connected, and then nothing: a daemon that is stuck or frozen.
        if (absl::StrContains(status.message(), "timed out")) {
          return TimedOut(ConnectTimeout());
        }
        return ExplainUnavailable(target_, connection_.identity(), status);
      case absl::StatusCode::kDeadlineExceeded:
        // The daemon's own text says more than gRPC's.
        if (status.message() != kOwnDeadline) return status;
        return TimedOut(options_.timeout);
      case absl::StatusCode::kUnimplemented:
        return absl::UnimplementedError(
            absl::StrCat(target_.text, ": the daemon does not know this call (",
                         status.message(),
                         "); it is of another version, see `dflctl "
                         "version`"));
      default:
        return status;
    }
  }

  const Target target_;
  const ClientOptions options_;
  Connection connection_;
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
