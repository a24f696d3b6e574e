// What the control service needs from the daemon, without gRPC or protobuf:
// app implements it over node, store and learner; tests have a fake.
//
// What an implementation may rely on, and must keep
//   Threads   every method may be called from any thread, several at once, and
//             must not block on the node's loop or on vector work: it reads a
//             published copy, or posts and calls `done` later.
//   done      is called exactly once, on any thread, from inside the call or
//             later. It may be called after the caller has gone; it is quick.
//   Lifetime  outlives the ControlServer. Sources, sinks and subscriptions are
//             destroyed before the server's destructor returns, but for a sink
//             whose Commit is still running: that one goes after its `done`.
//   Errors    absl codes as listed; the text says what, why, and what to do
//             next. They reach the caller unchanged.
#ifndef DFL_CONTROL_BACKEND_H_
#define DFL_CONTROL_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/events.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/memory_need.h"
#include "daemon/runtime/status.h"

namespace dfl::control {

template <typename T>
using Done = std::function<void(absl::StatusOr<T>)>;

struct VersionInfo {
  std::string version;                // of the program, "0.1.0"
  uint32_t peer_protocol = 1;         // newest it speaks
  uint32_t oldest_peer_protocol = 1;  // oldest it speaks
  NodeId node;
  std::vector<std::string> libraries;  // "torch 2.6.0"
};

struct DaemonStatus {
  runtime::NodeStatus node;
  std::string version;
  bool insecure = false;              // plaintext on the network somewhere
  std::vector<std::string> warnings;  // for an operator
  absl::Duration uptime;
  std::vector<std::string> peer_addresses;  // bound, "host:port"
  // As ModelFacts', of the plan that is held.
  int64_t memory_bytes = 0;
  int64_t memory_limit_bytes = 0;
};

// The newest plan the node holds, in force or waiting for a boundary.
struct PlanDocument {
  std::string yaml;               // "" = none
  uint64_t version = 0;           // 0 = none
  uint64_t version_in_force = 0;  // 0 = none yet
  std::string run_id;
};

struct ApplyPlanOptions {
  std::string yaml;
  // Must be the version the node holds, 0 for none; nullopt: any will do.
  std::optional<uint64_t> expected_version;
  bool dry_run = false;
  // The caller, for the log: "uid 1000" or "10.0.0.7:51234".
  std::string who;
};

// What a plan means for this node's model.
struct ModelFacts {
  std::string kind;
  std::string fingerprint;
  int64_t parameter_count = 0;
  int64_t buffer_count = 0;
  std::vector<std::string> dtypes;
  // Estimate of what the node needs in the worst case; 0 = not told. Its parts,
  // and what is allowed (0: not limited).
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

enum class TrainAction { kStart = 1, kPause = 2, kResume = 3, kStop = 4 };

// An address the node dials.
struct PeerAddress {
  std::string address;  // "host:port"
  NodeId node;          // who answered there; empty: nobody so far
  bool linked = false;
  std::string origin;      // "settings" or "control"
  std::string last_error;  // why it is not linked
};

struct Setting {
  std::string key;     // dotted
  std::string value;   // YAML; secrets left out
  std::string origin;  // "default", "file NAME:LINE", "environment NAME", ...
};

enum class ModelFileFormat { kSafetensors = 1, kTorchScript = 2 };

// A model file being read. One call at a time, from any thread.
class ModelSource {
 public:
  virtual ~ModelSource() = default;
  virtual int64_t total_bytes() const = 0;
  // Finished steps of the model in it.
  virtual int64_t step() const = 0;
  // min(max_bytes, total_bytes() - offset) bytes from `offset`, which is in
  // [0, total_bytes()]; max_bytes <= 1 MiB.
  virtual absl::StatusOr<std::string> Read(int64_t offset,
                                           int64_t max_bytes) = 0;
};

struct ImportResult {
  int64_t parameter_count = 0;
  int64_t step = 0;
};

// A model file being written. One call at a time, from any thread. Destroyed
// without a Commit (or while one runs), it leaves the model as it was or
// wholly replaced, never between.
class ModelSink {
 public:
  virtual ~ModelSink() = default;
  // Appends; the service has checked order and the announced length.
  virtual absl::Status Append(absl::string_view data) = 0;
  // Called once, when every byte is in.
  // Errors: INVALID_ARGUMENT when the file is no such model (says why).
  virtual void Commit(Done<ImportResult> done) = 0;
};

struct TimedEvent {
  absl::Time at;
  ports::NodeEvent event;
};

// Ends its subscription when destroyed: no call is running or will come after
// the destructor has returned.
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

  // Calls `on_event` for every event, in order, one at a time, on any thread;
  // it is quick and does not call back into Backend.
  virtual std::unique_ptr<Subscription> Subscribe(
      std::function<void(const TimedEvent&)> on_event) = 0;

  virtual PlanDocument Plan() = 0;

  // Checks the document as a whole and takes it over at the next boundary;
  // a dry run only checks. An empty run id or seed is minted here.
  // Errors: INVALID_ARGUMENT names line, key, value and what is allowed, or the
  // memory that it may need, by part, and the limit;
  // ABORTED when another version than expected is held, or a version not above
  // the held one comes with another document; FAILED_PRECONDITION when the
  // change is not possible while the run goes on.
  virtual void ApplyPlan(ApplyPlanOptions options,
                         Done<ApplyPlanResult> done) = 0;

  // Answers with the phase after the order.
  // Errors: FAILED_PRECONDITION names the phase it is in, or the missing plan.
  virtual void Train(TrainAction action, Done<ports::Phase> done) = 0;

  // Addresses dialled, sorted.
  virtual std::vector<PeerAddress> Peers() = 0;
  // Kept over restarts; waits for the disk.
  // Errors: ALREADY_EXISTS; INVALID_ARGUMENT for what is no "host:port"; else
  // the disk's: it is not added then.
  virtual absl::Status AddPeer(const std::string& address) = 0;
  // Errors: NOT_FOUND with the nearest address and all that there are; else the
  // disk's: an added one will be back after a restart.
  virtual absl::Status RemovePeer(const std::string& address) = 0;

  // Every setting in force, in the order of the sample file.
  virtual std::vector<Setting> Settings() = 0;

  // Takes a copy at a boundary and serialises it.
  // Errors: FAILED_PRECONDITION without a model; INVALID_ARGUMENT when the
  // model has no such form (TorchScript of a built-in model).
  virtual void BeginExport(ModelFileFormat format,
                           Done<std::unique_ptr<ModelSource>> done) = 0;

  // Errors: as BeginExport; RESOURCE_EXHAUSTED when `total_bytes` cannot be
  // the size of this model.
  virtual absl::StatusOr<std::unique_ptr<ModelSink>> BeginImport(
      ModelFileFormat format, int64_t total_bytes) = 0;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_BACKEND_H_
