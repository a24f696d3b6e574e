// What the control service needs from the daemon, without gRPC or protobuf:
// app implements it over node, store and learner; tests have a fake.
//
// Rules for an implementation
//   Threads   every method may be called from any thread, several at once, and
//             must not block on the node's loop or on vector work: it reads a
//             published copy, or posts and calls `done` later.
//   done      is called exactly once, on any thread, from inside the call or
//             later, also after the caller has gone. It returns quickly.
//   Lifetime  outlives the ControlServer. Sources, sinks and subscriptions are
//             destroyed before the server's destructor returns, except a sink
//             whose Commit is still running: it is destroyed after `done`.
//   Errors    absl codes as listed; the text says what, why, and what to do
//             next. They reach the caller unchanged.
#ifndef DFL_CONTROL_BACKEND_H_
#define DFL_CONTROL_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/control/caller.h"
#include "daemon/control/checkpoints.h"
#include "daemon/control/files.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/contract/data_offer.h"
#include "daemon/core/plan/member_spec.h"
#include "daemon/ports/events.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/memory_need.h"
#include "daemon/runtime/status.h"

namespace dfl::control {

struct VersionInfo {
  std::string version;                // of the program, "0.1.0"
  uint32_t peer_protocol = 1;         // newest it speaks
  uint32_t oldest_peer_protocol = 1;  // oldest it speaks
  NodeId node;
  std::vector<std::string> libraries;  // "torch 2.6.0"
  // The network whose orders must be signed; "": the node is insecure.
  std::string cluster;
  // The network whose orders are not signed, "" for one without a name; of
  // insecure nodes.
  std::string insecure_cluster;
};

struct DaemonStatus {
  runtime::NodeStatus node;
  std::string version;
  bool insecure = false;              // plaintext on the network somewhere
  std::vector<std::string> warnings;  // for an operator
  absl::Duration uptime;
  std::vector<std::string> peer_addresses;  // bound, "host:port"
  // As in ModelFacts, for the plan that the node holds.
  int64_t memory_bytes = 0;
  int64_t memory_limit_bytes = 0;
  std::string cluster;          // of the certificate; "" when insecure
  double certificate_days = 0;  // until it expires; 0: none is valid
  std::map<std::string, int64_t> refused;  // connections, by reason
  std::vector<std::string> banned;         // identities, sorted
  // What computes gradients, on how many threads, and why so many; "" and 0:
  // there is no model.
  std::string learner;
  int64_t threads = 0;
  std::string threads_reason;
};

// The newest plan the node holds, in force or waiting for a boundary.
struct PlanDocument {
  std::string yaml;               // "" = none
  uint64_t version = 0;           // 0 = none
  uint64_t version_in_force = 0;  // 0 = none yet
  std::string run_id;
  // Of the documents that PastPlan has, rising.
  std::vector<uint64_t> kept_versions;
};

struct ApplyPlanOptions {
  // Exactly one of the two is set: the document, or a serialised
  // dfl.record.v1.SignedRecord that holds it.
  std::string yaml;
  std::string record;
  // The version that the node must hold, 0 for none; nullopt: any.
  std::optional<uint64_t> expected_version;
  bool dry_run = false;
  // For the log.
  Caller caller;
  Begin begin;
};

// What a plan means for this node's model.
struct ModelFacts {
  std::string kind;
  std::string fingerprint;
  int64_t parameter_count = 0;
  int64_t buffer_count = 0;
  std::vector<std::string> dtypes;
  // An estimate of the memory that the node needs in the worst case (0:
  // unknown), its parts, and the limit (0: none).
  int64_t memory_bytes = 0;
  std::vector<runtime::MemoryPart> memory_parts;
  int64_t memory_limit_bytes = 0;
  int64_t message_bytes = 0;  // one model in the plan's format; 0 = not told
  double spectral_gap = 0;
  std::string first_step_note;
  int64_t train_rows = 0;
  int64_t test_rows = 0;
};

struct ApplyPlanResult {
  uint64_t version = 0;
  std::string run_id;
  std::vector<std::string> warnings;
  std::optional<ModelFacts> facts;  // dry runs
  bool unchanged = false;           // the node held this very document
};

// One class of the data, and one feature of the training rows, raw.
struct ClassCount {
  std::string name;
  int64_t train_rows = 0;
  int64_t test_rows = 0;
};
struct FeatureRange {
  std::string name;  // "": it has none
  double min = 0;
  double max = 0;
  double mean = 0;
  int64_t missing = 0;  // rows without a value
};

// What a node's files hold.
struct DataReport {
  std::string format;  // "csv"; "": not told
  int64_t train_rows = 0;
  int64_t test_rows = 0;
  std::vector<ClassCount> classes;     // none: regression
  std::vector<FeatureRange> features;  // the first 1,000
  int64_t feature_count = 0;
  std::vector<std::string> warnings;  // what a person should look at
};

// The answer to GetData.
struct NodeData {
  core::DataOffer offer;
  std::optional<core::DataContract> contract;  // in force; none: no plan
  DataReport report;
};

struct PutRecordResult {
  bool unchanged = false;  // the node held this very record
};

// One signed record without its content, as control.proto tells it.
struct RecordInfo {
  std::string kind;     // "plan", "phase" or "ban"
  std::string subject;  // "" = the kind has one subject
  uint64_t counter = 0;
  std::string author;  // identity
  absl::Time signed_at = absl::UnixEpoch();
  std::string summary;      // for people
  bool current = false;     // false: another one took its place
  std::string body_sha256;  // hex
};

enum class TrainAction { kStart = 1, kPause = 2, kResume = 3, kStop = 4 };

// An address the node dials.
struct PeerAddress {
  std::string address;  // "host:port"
  NodeId node;          // who answered there; empty: nobody so far
  bool linked = false;
  std::string origin;      // "settings" or "control"
  std::string last_error;  // why it is not linked
};

// How a member is, in the words of control.proto.
enum class MemberState {
  kAlone = 1,
  kJoining = 2,
  kMember = 3,
  kDegraded = 4,
  kDraining = 5,
  kLeft = 6,
  kDead = 7,
};

// A member as this node believes it to be.
struct MemberInfo {
  NodeId node;
  MemberState state = MemberState::kMember;
  std::string reason;    // of kDegraded
  bool suspect = false;  // does not answer at the moment
  std::map<std::string, std::string> labels;
  std::vector<std::string> addresses;  // none: it only dials out
  int64_t rows = 0;                    // 0: not told
  core::Participation participation = core::Participation::kTrain;
  uint64_t plan_version = 0;  // in force; 0: none
  uint64_t plan_hash = 0;     // first 8 bytes of the hash of its record
  bool linked = false;
  absl::Duration in_state;
  std::string pace;  // "lan", "wan" or "cellular"
  uint64_t starts = 1;
  bool self = false;

  // It answers, or may.
  bool present() const {
    return state != MemberState::kLeft && state != MemberState::kDead;
  }
};

struct MemberTable {
  NodeId self;
  // Membership is off: this node alone is listed.
  bool membership_off = false;
  std::vector<MemberInfo> members;  // sorted by name; this node is in it
};

struct MemberPing {
  absl::Duration round_trip;
  int32_t hops = 0;  // 0: it was this node
};

struct Setting {
  std::string key;     // dotted
  std::string value;   // YAML; secrets left out
  std::string origin;  // "default", "file NAME:LINE", "environment NAME", ...
};

enum class ModelFileFormat { kSafetensors = 1, kTorchScript = 2 };

// A model file being read.
class ModelSource : public FileSource {
 public:
  // Finished steps of the model in it.
  virtual int64_t step() const = 0;
  // What a stranger needs to use the model, as a JSON document. A safetensors
  // file holds the same in its metadata.
  virtual std::string description() const = 0;
};

// A model file that is announced, and what of it is wanted: as in
// dfl.control.v1.BeginImportRequest.
struct ImportRequest {
  ModelFileFormat format = ModelFileFormat::kSafetensors;
  int64_t total_bytes = 0;
  std::vector<std::string> only;
  bool init_missing = false;
  std::string strip_prefix;
  bool other_names = false;
};

struct ImportResult {
  int64_t parameter_count = 0;  // taken over
  int64_t step = 0;
  std::vector<std::string> notes = {};  // for people
};

// A model file being written. If it is destroyed without a Commit, or during
// one, the model is either unchanged or wholly replaced.
class ModelSink : public FileSink {
 public:
  // Called once, after all bytes were appended.
  // Errors: INVALID_ARGUMENT when the file is no such model (says why).
  virtual void Commit(Done<ImportResult> done) = 0;
};

struct TimedEvent {
  absl::Time at;
  ports::NodeEvent event;
};

// How many events a node keeps.
inline constexpr size_t kKeptEvents = 256;

struct KeptEvents {
  std::vector<TimedEvent> events;  // the newest kKeptEvents, oldest first
  int64_t forgotten = 0;           // how many there were before them
};

// Ends its subscription when destroyed: once the destructor has returned, no
// call runs or follows.
class Subscription {
 public:
  virtual ~Subscription() = default;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual VersionInfo Version() = 0;

  // The last published copy; never waits for the node's loop.
  virtual DaemonStatus Status() = 0;

  // Calls `on_event` for every event, in order, one at a time, on any thread.
  // `on_event` returns quickly and does not call Backend.
  virtual std::unique_ptr<Subscription> Subscribe(
      std::function<void(const TimedEvent&)> on_event) = 0;

  // Events that watchers are told (IsWatched), as far as they are kept.
  virtual KeptEvents Events() = 0;

  virtual PlanDocument Plan() = 0;
  // A document that the node took before; the newest one under its version.
  // Errors: NOT_FOUND names those that it keeps.
  virtual absl::StatusOr<PlanDocument> PastPlan(uint64_t version) = 0;

  // Checks the document as a whole and adopts it at the next boundary. A dry
  // run only checks it. An empty run id or seed is filled in here, but not in
  // a signed document, which must be complete. A signed one is also passed on
  // to the other nodes. The service has refused an unsigned one where orders
  // must be signed.
  // Errors, beside those of PutRecord where a record is given:
  //   INVALID_ARGUMENT     names line, key, value and what is allowed; or the
  //                        memory that the plan may need, by part, and the
  //                        limit.
  //   ABORTED              the node does not hold the expected version; or it
  //                        holds another document of this version or a later
  //                        one.
  //   FAILED_PRECONDITION  the change is not possible while the run goes on.
  //   RESOURCE_EXHAUSTED   too many plans wait for their turn.
  //   CANCELLED            `begin` said no.
  virtual void ApplyPlan(ApplyPlanOptions options,
                         Done<ApplyPlanResult> done) = 0;

  // What the node's data say of the data contract under the plan `yaml`, which
  // changes nothing. With "", under no plan: loss and model are then those in
  // force, and the answer has a report.
  // Errors: INVALID_ARGUMENT for a plan or a model that this node cannot take;
  // NOT_FOUND where the plan has members and this node is none of them, and for
  // the model's file; PERMISSION_DENIED, ...; RESOURCE_EXHAUSTED, CANCELLED as
  // ApplyPlan's.
  virtual void GetData(std::string yaml, Begin begin, Done<NodeData> done) = 0;

  // Checks a serialised dfl.record.v1.SignedRecord, obeys it and passes it on.
  // The author counts; the caller only brings it.
  // Errors:
  //   INVALID_ARGUMENT     it is damaged, or of a kind that this node does not
  //                        know.
  //   PERMISSION_DENIED    the signature, or the author's certificate, role
  //                        or cluster, does not entitle it; or the author is
  //                        banned.
  //   ABORTED              a newer record of its kind and subject is here.
  //   FAILED_PRECONDITION  it is signed and this node insecure, or the node
  //                        takes no records.
  virtual void PutRecord(std::string record, Caller caller,
                         Done<PutRecordResult> done) = 0;
  // Those that count, and the newest of the others, by kind and counter.
  virtual std::vector<RecordInfo> ListRecords() = 0;

  // Calls `done` with the phase after the order, once it is on disk.
  // Errors: FAILED_PRECONDITION names the phase it is in, or the missing plan;
  // CANCELLED when `begin` said no; an error of the disk, and then the node
  // obeys until it is started again.
  virtual void Train(TrainAction action, Begin begin,
                     Done<ports::Phase> done) = 0;

  // Addresses dialled, sorted.
  virtual std::vector<PeerAddress> Peers() = 0;
  // Adds an address for good, also after restarts. Waits for the disk.
  // Errors: ALREADY_EXISTS; INVALID_ARGUMENT if it is no "host:port"; an error
  // of the disk, and then the address is not added.
  virtual absl::Status AddPeer(const std::string& address) = 0;
  // Errors: NOT_FOUND with the nearest address and all others; an error of the
  // disk, and then an added address will be back after a restart.
  virtual absl::Status RemovePeer(const std::string& address) = 0;

  // The last published copy of the table of members.
  virtual MemberTable Members() = 0;
  // Asks `node`, this one included, for its own status: a serialised
  // dfl.control.v1.MemberReport, as it came. The service trusts nothing in it.
  // Errors: NOT_FOUND when there is no such member or no way to it;
  // DEADLINE_EXCEEDED after `within`; UNAVAILABLE when it has none.
  virtual void AskMember(NodeId node, absl::Duration within,
                         Done<std::string> done) = 0;
  // Errors: as AskMember.
  virtual void PingMember(NodeId node, absl::Duration within,
                          Done<MemberPing> done) = 0;

  // Every setting in force, in the order of the sample file.
  virtual std::vector<Setting> Settings() = 0;

  // Takes a copy at a boundary and serialises it.
  // Errors: FAILED_PRECONDITION without a model; INVALID_ARGUMENT when the
  // model cannot be written in this format (TorchScript of a built-in model).
  virtual void BeginExport(ModelFileFormat format,
                           Done<std::unique_ptr<ModelSource>> done) = 0;

  // Errors: as BeginExport. The sink tells what does not fit.
  virtual absl::StatusOr<std::unique_ptr<ModelSink>> BeginImport(
      const ImportRequest& request) = 0;

  // Lives as long as the backend.
  virtual Checkpoints& checkpoints() = 0;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_BACKEND_H_
