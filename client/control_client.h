// Steers one daemon from a program.
//
//   using dfl::client::ControlClient;
//   auto client = ControlClient::Connect("unix:/run/dfld/control.sock");
//   // or, with ClientOptions options,
//   options.identity = [] { return ReadIdentity("/etc/me/operator/alice"); };
//   auto client = ControlClient::Connect("box-2:7601", options);
//   auto status = (*client)->Status();
//   if (!status.ok()) std::cerr << status.status().message();
//
// Calls block until they are answered or their deadline passes. A call that
// changes nothing is retried on UNAVAILABLE after 50, 100, 200 ms ..., until
// its attempts are used up or the deadline passes; a stream, as long as no
// message has come. A call that changes something is sent once, unless the
// daemon certainly never received it.
//
// Thread-safe; one client per daemon is enough. C++17, needs absl only.
//
// Errors, of every call
//   INVALID_ARGUMENT    the request is wrong; the text says what is allowed
//   UNAVAILABLE         nobody answers there; the text names the target
//   DEADLINE_EXCEEDED   no answer in time
//   PERMISSION_DENIED   the caller's role is too low (also: the socket's mode)
//   UNAUTHENTICATED     one of the two ends does not accept the certificate of
//                       the other, or one of them speaks plain text; the text
//                       says which, and what to do
//   ABORTED             somebody else changed the plan meanwhile
//   FAILED_PRECONDITION not in this state
//   UNIMPLEMENTED       the daemon is older than this call
#ifndef DFL_CLIENT_CONTROL_CLIENT_H_
#define DFL_CLIENT_CONTROL_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/types.h"

namespace dfl {
namespace client {

// Newest version of the control contract this library speaks.
constexpr uint32_t kControlProtocolVersion = 1;

// Who the caller is to daemons on the network, in PEM form.
struct ClientIdentity {
  std::string bundle;  // authorities that vouch for the daemons
  std::string chain;   // the caller's certificate first
  std::string key;     // of the certificate, not encrypted
};

// The files ca.pem, cert.pem and key.pem of a person's folder, as `dflctl cert
// issue` writes them. The text of an error names the file and says what is
// wrong with it and what to do.
absl::StatusOr<ClientIdentity> ReadIdentity(const std::string& folder);

struct ClientOptions {
  // For each call, including its retries.
  absl::Duration timeout = absl::Seconds(10);
  // Attempts of a call that changes nothing, >= 1.
  int max_attempts = 4;
  // Asked by the first call to a target on the network, which fails with its
  // error. May be null where all targets are unix sockets or plain text.
  std::function<absl::StatusOr<ClientIdentity>()> identity;
  // Targets on the network are spoken to in plain text.
  bool insecure = false;
};

class ControlClient {
 public:
  virtual ~ControlClient() = default;

  // `target` is "unix:/path", "/path", "host:port" by mutual TLS, or
  // "insecure:host:port" in plain text. The daemon must show the certificate of
  // a node of the caller's network. Does not wait for the daemon; the first
  // call does.
  // Errors: INVALID_ARGUMENT when `target` has another form.
  static absl::StatusOr<std::unique_ptr<ControlClient>> Connect(
      absl::string_view target, ClientOptions options = {});

  // The target of Connect, in full form.
  virtual const std::string& target() const = 0;

  virtual absl::StatusOr<client::Version> Version() = 0;
  virtual absl::StatusOr<DaemonStatus> Status() = 0;

  // Calls `on_update` for every message. Returns OK once `on_update` returns
  // false or `stop_requested`, called about every 100 ms, returns true; returns
  // UNAVAILABLE if the stream breaks. The timeout is for the first message, and
  // beside the interval for each after it: a daemon that falls silent is
  // DEADLINE_EXCEEDED.
  virtual absl::Status Watch(absl::Duration interval,
                             std::function<bool(const WatchUpdate&)> on_update,
                             std::function<bool()> stop_requested) = 0;

  virtual absl::StatusOr<PlanDocument> Plan() = 0;
  // A plan that the daemon took before.
  // Errors: NOT_FOUND names the versions that it keeps.
  virtual absl::StatusOr<PlanDocument> PastPlan(uint64_t version) = 0;
  virtual absl::StatusOr<ApplyPlanResult> ApplyPlan(
      const ApplyPlanOptions& options) = 0;

  // What the node's data are, and what they say of the data contract under the
  // plan `yaml`; "": without one.
  virtual absl::StatusOr<NodeData> Data(const std::string& yaml) = 0;

  // Brings a serialised dfl.record.v1.SignedRecord; a plan goes to ApplyPlan.
  // It may be brought again, so it is retried.
  virtual absl::StatusOr<PutRecordResult> PutRecord(
      const std::string& record) = 0;
  // Those that count, and the newest of the others, by kind and counter.
  virtual absl::StatusOr<std::vector<RecordInfo>> ListRecords() = 0;

  // Returns the phase after the order.
  virtual absl::StatusOr<Phase> Train(TrainAction action) = 0;

  virtual absl::StatusOr<client::Peers> Peers() = 0;
  // Returns false if the address was dialled already.
  virtual absl::StatusOr<bool> AddPeer(const std::string& address) = 0;
  virtual absl::Status RemovePeer(const std::string& address) = 0;

  // The members of the network as the daemon believes them to be, itself
  // included. Errors: NOT_FOUND for a name or label that means nobody.
  virtual absl::StatusOr<MemberTable> Members(
      const MemberSelection& selection) = 0;
  // Has the daemon ask members for their own status, and calls `on_answer` for
  // each as soon as it has answered or failed to. Returns OK when all have, or
  // as Watch when the caller wants no more. The timeout and options.within
  // together are for each message. That a member does not answer is no error of
  // the call. Errors: as Members; RESOURCE_EXHAUSTED when too many ask at once.
  virtual absl::Status AskMembers(
      const AskOptions& options,
      std::function<bool(const MemberAnswer&)> on_answer,
      std::function<bool()> stop_requested) = 0;
  // Whether a member answers the daemon within a time from 10 ms to 60 s.
  // Errors: NOT_FOUND: no such member, or no way to it; DEADLINE_EXCEEDED.
  virtual absl::StatusOr<MemberPing> Ping(const std::string& node,
                                          absl::Duration within) = 0;
  // What happened on the daemon's node lately. Errors: INVALID_ARGUMENT for an
  // unknown kind, with the nearest.
  virtual absl::StatusOr<EventList> Events(const EventFilter& filter) = 0;

  virtual absl::StatusOr<std::vector<Setting>> Settings() = 0;

  // The daemon's metrics in Prometheus' text format.
  virtual absl::StatusOr<std::string> Metrics() = 0;
  // The newest lines of its log.
  virtual absl::StatusOr<LogList> Log(const LogFilter& filter) = 0;
  // Sets the least grave level that is written, for `time` (at most 24 h);
  // kUnknown: that of the settings again. Errors: INVALID_ARGUMENT.
  virtual absl::StatusOr<LogLevels> SetLogLevel(LogLevel level,
                                                absl::Duration time) = 0;
  // Has the daemon look at itself and its machine.
  virtual absl::StatusOr<Diagnosis> Diagnose() = 0;

  // Passes the file to `write` in order, with its total length. An error of
  // `write` ends the export and is returned. The timeout is for each part.
  virtual absl::StatusOr<ExportResult> ExportModel(
      ModelFormat format,
      std::function<absl::Status(absl::string_view data, int64_t total_bytes)>
          write) = 0;

  // Takes `total_bytes` from `read(offset, max_bytes)`, which returns at least
  // one byte. The timeout is for each part, and for the check at the end.
  virtual absl::StatusOr<ImportResult> ImportModel(
      ModelFormat format, int64_t total_bytes,
      std::function<absl::StatusOr<std::string>(int64_t offset,
                                                int64_t max_bytes)>
          read,
      const ImportOptions& options) = 0;

  // The checkpoints that the node holds.
  virtual absl::StatusOr<CheckpointList> Checkpoints() = 0;
  // Has the node write one at its next boundary, or, where it does not train,
  // of what it has; returns when it is written. After DEADLINE_EXCEEDED it may
  // still be. Errors: FAILED_PRECONDITION says why there is nothing to write;
  // RESOURCE_EXHAUSTED when the disk is full.
  virtual absl::StatusOr<CheckpointInfo> SaveCheckpoint() = 0;
  // Passes the newest one that is whole to `write`, as ExportModel does.
  // Errors: NOT_FOUND: there is none.
  virtual absl::StatusOr<CheckpointInfo> ExportCheckpoint(
      std::function<absl::Status(absl::string_view data, int64_t total_bytes)>
          write) = 0;
  // Has a node that does not train go on from a checkpoint file, which `read`
  // gives as for ImportModel, once it is told to train.
  // Errors: FAILED_PRECONDITION: the node trains, or the file is of another
  // node, run or version of the plan; INVALID_ARGUMENT: it is broken.
  virtual absl::StatusOr<RestoreResult> RestoreCheckpoint(
      int64_t total_bytes,
      std::function<absl::StatusOr<std::string>(int64_t offset,
                                                int64_t max_bytes)>
          read,
      const RestoreOptions& options) = 0;
};

}  // namespace client
}  // namespace dfl

#endif  // DFL_CLIENT_CONTROL_CLIENT_H_
