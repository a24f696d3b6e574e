// The answers of a daemon as plain values. Units are in the names. Text is for
// people, everything else for programs. C++17.
#ifndef DFL_CLIENT_TYPES_H_
#define DFL_CLIENT_TYPES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace dfl {
namespace client {

enum class Phase {
  kUnknown = 0,  // of a newer daemon
  kIdle = 1,     // no plan, or not started
  kJoining = 2,  // looking for a neighbour's model to start from
  kTraining = 3,
  kPaused = 4,
  kFinished = 5,  // the stop rule was met; still answers
  kStopped = 6,   // stopped by hand; still answers
  kDegraded = 7,  // training fails; still mixes and answers
  kFailed = 8,    // training failed for good; still answers
};
// "training", ...
const char* PhaseName(Phase phase);

struct IntRange {
  int64_t lo = 0;
  int64_t hi = 0;
};
using KnobValue = std::variant<double, int64_t, bool, std::string, IntRange>;

struct Version {
  std::string version;
  uint32_t control_protocol = 0;
  uint32_t peer_protocol = 0;
  uint32_t oldest_peer_protocol = 0;
  std::string node;
  std::vector<std::string> libraries;
  // The network whose orders must be signed; "": the daemon is insecure.
  std::string cluster;
  // The network of an insecure daemon; "": it has no name.
  std::string insecure_cluster;
};

struct Evaluation {
  int64_t step = 0;
  double loss = 0;
  std::optional<double> accuracy;  // in [0, 1]
  std::optional<double> macro_f1;  // in [0, 1]
  std::optional<double> mae;
  std::optional<double> r2;
  int64_t rows = 0;
};

// One neighbour of the graph, or a peer linked without being one.
struct PeerStatus {
  std::string node;
  std::string address;
  bool neighbour = false;
  bool linked = false;
  double weight = 0;
  Phase phase = Phase::kUnknown;
  int64_t step = 0;
  uint64_t plan_version = 0;
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  int64_t models_sent = 0;
  int64_t models_received = 0;
  int64_t missed = 0;
  int64_t rejected = 0;
  bool mixing = false;
  std::string not_mixing;
  std::vector<std::string> disagrees;
  std::string last_error;
};

// The status of a node. Counters count since the daemon started. control.proto
// has the full meaning of each field.
struct NodeStatus {
  std::string node;
  uint64_t incarnation = 0;
  Phase phase = Phase::kUnknown;
  std::string phase_reason;

  std::string run_id;
  uint64_t plan_version = 0;          // in force; 0 = no plan
  uint64_t pending_plan_version = 0;  // waits for a boundary; 0 = none
  std::string algorithm;
  std::map<std::string, KnobValue> knobs;
  std::string topology;
  std::string weights;
  double spectral_gap = 0;
  int64_t member_count = 0;
  std::string format;

  std::string model;
  std::map<std::string, std::string> contract;
  int64_t parameter_count = 0;
  int64_t buffer_count = 0;
  int64_t train_rows = 0;
  int64_t test_rows = 0;

  int64_t step = 0;
  int64_t stop_steps = 0;  // 0 = no limit
  int64_t round = 0;
  int64_t stop_rounds = 0;
  double epochs = 0;
  double stop_epochs = 0;
  int64_t gradients = 0;
  int64_t failed_gradients = 0;
  int64_t skipped_batches = 0;
  int64_t far_models = 0;
  std::optional<double> loss;
  std::optional<Evaluation> evaluation;
  double steps_per_second = 0;
  double training_seconds = 0;
  double longest_step_gap_seconds = 0;
  std::map<std::string, double> gauges;

  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  int64_t dense_bytes_sent = 0;
  int64_t models_sent = 0;
  int64_t models_received = 0;
  int64_t missed = 0;
  std::map<std::string, int64_t> rejected;

  std::string alone;
  std::string last_error;
  int64_t checkpoint_step = 0;  // of the last one written; 0: none was
  std::string checkpoint_error;
  std::string data_error;
  std::vector<PeerStatus> peers;  // sorted by name
};

struct DaemonStatus {
  NodeStatus node;
  std::string version;
  bool insecure = false;
  std::vector<std::string> warnings;
  double uptime_seconds = 0;
  std::vector<std::string> peer_addresses;
  // The memory that the node's plan needs in the worst case (0: no plan), and
  // the limit (0: none).
  int64_t memory_bytes = 0;
  int64_t memory_limit_bytes = 0;
  std::string cluster;          // "": the daemon is insecure
  double certificate_days = 0;  // until it expires; 0: it has none
  // Connections refused, by reason, and identities that are banned.
  std::map<std::string, int64_t> refused;
  std::vector<std::string> banned;
};

// One fact.
struct Event {
  int64_t unix_nanos = 0;
  std::string kind;  // one of EventKinds(); "" = of a newer daemon
  int64_t step = 0;
  std::string peer;
  std::string text;
};

struct WatchUpdate {
  DaemonStatus status;
  std::vector<Event> events;
  int64_t events_dropped = 0;
};

// "phase-changed", "evaluated", ...: every kind that this library knows.
const std::vector<std::string>& EventKinds();

struct EventFilter {
  std::vector<std::string> kinds;  // of EventKinds(); none: all
  int limit = 256;                 // the newest so many, from 1 to 256
};

// What a daemon remembers.
struct EventList {
  std::vector<Event> events;  // oldest first
  int64_t forgotten = 0;      // of all kinds, before those that it remembers
};

// How a member is. control.proto has the full meaning.
enum class MemberState {
  kUnknown = 0,  // of a newer daemon
  kAlone = 1,    // the node that answers knows of nobody else
  kJoining = 2,
  kMember = 3,
  kDegraded = 4,  // cannot do its part; Member::reason says why
  kDraining = 5,
  kLeft = 6,
  kDead = 7,
};
// "alone", ...
const char* MemberStateName(MemberState state);

// What a member does in a run.
enum class Participation { kUnknown = 0, kTrain = 1, kMix = 2, kObserve = 3 };
// "train", ...
const char* ParticipationName(Participation participation);

// A member as the node that answers believes it to be.
struct Member {
  std::string node;
  MemberState state = MemberState::kUnknown;
  std::string reason;    // of kDegraded
  bool suspect = false;  // does not answer at the moment
  std::map<std::string, std::string> labels;
  std::vector<std::string> addresses;  // none: it only dials out
  int64_t rows = 0;                    // 0: not told
  Participation participation = Participation::kUnknown;
  uint64_t plan_version = 0;  // in force; 0 = none
  std::string plan_hash;      // 16 hex digits; "" = none
  bool linked = false;
  double seconds_in_state = 0;
  std::string pace;  // "lan", "wan" or "cellular"
  uint64_t starts = 0;
  bool self = false;  // it is the node that answers

  // It answers, or may.
  bool present() const {
    return state != MemberState::kLeft && state != MemberState::kDead;
  }
};

struct MemberTable {
  std::string node;             // who answers
  bool membership_off = false;  // it knows of itself alone
  std::vector<Member> members;  // sorted by name
};

// Those that one of the names or labels means; empty: all.
struct MemberSelection {
  std::vector<std::string> nodes;
  std::vector<std::string> labels;  // "site=north"
};

struct AskOptions {
  MemberSelection selection;
  // How long each member has to answer, from 0.1 to 60 s.
  absl::Duration within = absl::Seconds(5);
};

// What became of asking one member for its status.
struct MemberAnswer {
  Member member;
  // Its own status. Errors: NOT_FOUND, there is no way to it; UNAVAILABLE, it
  // is gone; DEADLINE_EXCEEDED; INTERNAL, its answer cannot be read.
  absl::StatusOr<DaemonStatus> status;
  // Since it took note of that, at most.
  double age_seconds = 0;
  int asked = 0;  // how many are asked in all
};

struct MemberPing {
  absl::Duration round_trip;
  int hops = 0;  // links on the way back; 0: it was the node that was called
};

// The newest plan a node holds.
struct PlanDocument {
  std::string yaml;               // "" = none
  uint64_t version = 0;           // 0 = none
  uint64_t version_in_force = 0;  // 0 = none yet
  std::string run_id;
  std::vector<uint64_t> kept_versions;  // as PastPlan takes them; rising
};

struct ApplyPlanOptions {
  // The document. Unset where `record` is set.
  std::string yaml;
  // The version that the node must hold, 0 for none; nullopt: any.
  std::optional<uint64_t> expected_version;
  bool dry_run = false;
  // A serialised dfl.record.v1.SignedRecord that holds the document. "": the
  // plan is not signed.
  std::string record{};
};

// A part of the memory that a node needs.
struct MemoryPart {
  std::string what;
  int64_t bytes = 0;
};

struct ModelFacts {
  std::string kind;
  std::string fingerprint;
  int64_t parameter_count = 0;
  int64_t buffer_count = 0;
  std::vector<std::string> dtypes;
  int64_t memory_bytes = 0;
  std::vector<MemoryPart> memory_parts;  // their sum is memory_bytes
  int64_t memory_limit_bytes = 0;        // 0: none
  int64_t message_bytes = 0;
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
  bool unchanged = false;
};

// How a raw value becomes an input: (raw / divide - mean) / std.
struct InputScaling {
  double divide = 1;
  std::string per;          // "none", "all", "channel" or "feature"
  std::string over;         // "node", "network" or "given"
  std::vector<float> mean;  // none: each node has its own, or there are none
  std::vector<float> std;
};

// What the numbers of the data and the model mean.
struct DataContract {
  std::string task;                   // "classification" or "regression"
  std::vector<std::string> classes;   // of class 0, 1, ...; none: regression
  std::vector<std::string> features;  // in order; none: they have no names
  std::vector<int64_t> shape;         // of one row
  InputScaling input;
  std::string loss;   // "" = no model yet
  std::string model;  // SHA-256, hex; "" = no model yet
};

// Sums over a node's training rows, for a standardisation over the network.
struct DataMoments {
  int64_t count = 0;  // values in each sum; 0: there are no sums
  std::vector<double> sums;
  std::vector<double> squares;  // of the differences from the node's mean
};

struct ClassCount {
  std::string name;
  int64_t train_rows = 0;
  int64_t test_rows = 0;
};

// Of the training rows, raw.
struct FeatureRange {
  std::string name;
  double min = 0;
  double max = 0;
  double mean = 0;
  int64_t missing = 0;
};

// What a node's data are. control.proto has the full meaning of each field.
struct NodeData {
  std::string node;
  DataContract offer;  // by data and settings alone
  bool classes_stated = false;
  std::vector<std::string> class_places;
  bool shape_is_at_least = false;
  bool divide_stated = false;
  bool standardise_stated = false;
  DataMoments moments;
  std::optional<DataContract> contract;  // in force
  std::string format;
  int64_t train_rows = 0;
  int64_t test_rows = 0;
  std::vector<ClassCount> classes;
  std::vector<FeatureRange> features;  // at most 1,000
  int64_t feature_count = 0;
  std::vector<std::string> warnings;
};

struct PutRecordResult {
  bool unchanged = false;  // the daemon held this very record
};

// One signed record without its content.
struct RecordInfo {
  std::string kind;     // "plan", "phase" or "ban"
  std::string subject;  // "" = the kind has one subject
  uint64_t counter = 0;
  std::string author;      // identity
  int64_t unix_nanos = 0;  // by the author's clock
  std::string summary;
  bool current = false;     // false: another one took its place
  std::string body_sha256;  // hex
};

enum class TrainAction { kStart = 1, kPause = 2, kResume = 3, kStop = 4 };

struct PeerAddress {
  std::string address;
  std::string node;
  bool linked = false;
  std::string origin;
  std::string last_error;
};

struct Peers {
  std::vector<PeerAddress> addresses;  // dialled
  std::vector<PeerStatus> peers;       // known by name
};

struct Setting {
  std::string key;
  std::string value;
  std::string origin;
};

enum class ModelFormat { kSafetensors = 1, kTorchScript = 2 };

struct ExportResult {
  int64_t total_bytes = 0;
  int64_t step = 0;
  // What a stranger needs to use the model, as a JSON document.
  std::string description;
};

// What of a model file is wanted: as in dfl.control.v1.BeginImportRequest.
struct ImportOptions {
  std::vector<std::string> only;  // patterns of the model's names
  bool init_missing = false;
  std::string strip_prefix;
  bool other_names = false;
};

struct ImportResult {
  int64_t parameter_count = 0;
  int64_t step = 0;
  std::vector<std::string> notes;  // for people
};

// A checkpoint that a node holds. control.proto has the full meaning.
struct CheckpointInfo {
  std::string file;
  int64_t bytes = 0;
  int64_t unix_nanos = 0;  // when it was written; 0: not told
  std::string node;        // that wrote it
  std::string run_id;
  uint64_t plan_version = 0;
  std::string algorithm;
  int64_t iteration = 0;
  int64_t steps = 0;
  int64_t rounds = 0;
  uint64_t tracker_epoch = 0;  // 0: no mass is given
};

// A file that is no checkpoint to go on from.
struct AsideCheckpoint {
  std::string file;
  int64_t bytes = 0;
  std::string reason;  // "": not known
};

struct CheckpointList {
  std::string node;
  std::vector<CheckpointInfo> checkpoints;  // the newest first
  std::vector<AsideCheckpoint> aside;
};

struct RestoreOptions {
  // One of another version of the plan will do: its model and its counts are
  // taken, and the algorithm begins anew.
  bool other_version = false;
};

struct RestoreResult {
  CheckpointInfo checkpoint;
  Phase phase = Phase::kUnknown;
};

// How grave a line of a daemon's log is.
enum class LogLevel {
  kUnknown = 0,
  kDebug = 1,
  kInfo = 2,
  kWarning = 3,
  kError = 4,
};
// "debug", "info", "warning", "error"; "unknown".
std::string ToString(LogLevel level);

struct LogLine {
  int64_t id = 0;  // counts lines from 1
  int64_t unix_nanos = 0;
  LogLevel level = LogLevel::kUnknown;
  std::string event;  // "link-down"
  std::string text;
  std::map<std::string, std::string> fields;
};

struct LogFilter {
  int64_t after = 0;  // only lines after this one
  int32_t limit = 0;  // the newest so many of them; 0: all that are kept
  LogLevel level = LogLevel::kUnknown;  // the least grave; kUnknown: all
};

struct LogList {
  std::vector<LogLine> lines;           // in the order written
  int64_t forgotten = 0;                // lines after `after` that are not kept
  LogLevel level = LogLevel::kUnknown;  // in force
  double seconds_left = 0;  // until that of the settings is; 0: it is
};

struct LogLevels {
  LogLevel now = LogLevel::kUnknown;
  LogLevel settings = LogLevel::kUnknown;
};

// What a check of a daemon found.
struct Finding {
  enum class Kind { kUnknown = 0, kOk = 1, kWarning = 2, kFault = 3 };
  std::string check;
  Kind kind = Kind::kUnknown;
  std::string text;
  std::string remedy;  // "": nothing is to be done
};

struct Diagnosis {
  std::vector<Finding> findings;
  int64_t unix_nanos = 0;  // the daemon's wall clock
};

}  // namespace client
}  // namespace dfl

#endif  // DFL_CLIENT_TYPES_H_
