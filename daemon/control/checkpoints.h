// What the control service needs from the daemon for checkpoints; a part of
// Backend, whose rules hold here.
#ifndef DFL_CONTROL_CHECKPOINTS_H_
#define DFL_CONTROL_CHECKPOINTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/control/files.h"
#include "daemon/ports/frames.h"

namespace dfl::control {

// A checkpoint that the node holds, as control.proto tells it.
struct CheckpointInfo {
  std::string file;  // its name in the state directory
  int64_t bytes = 0;
  absl::Time written = absl::UnixEpoch();  // the epoch: not told
  std::string node;                        // that wrote it
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
  std::vector<CheckpointInfo> checkpoints;  // the newest first
  std::vector<AsideCheckpoint> aside;
};

// A checkpoint file being read.
class CheckpointSource : public FileSource {
 public:
  virtual CheckpointInfo info() const = 0;
};

// A checkpoint file that is announced: as in
// dfl.control.v1.BeginRestoreRequest.
struct RestoreRequest {
  int64_t total_bytes = 0;
  bool other_version = false;
};

struct RestoreResult {
  CheckpointInfo checkpoint;
  ports::Phase phase = ports::Phase::kIdle;
};

// A checkpoint file being written. If it is destroyed without a Commit, nothing
// is left of it. During one the node goes on from it, or is as it was before.
class CheckpointSink : public FileSink {
 public:
  // Called once, after all bytes were appended.
  // Errors: INVALID_ARGUMENT: it is broken, or not for this node's model;
  // FAILED_PRECONDITION: it is of another node, run or version of the plan, or
  // the node trains. The text names both sides, and what helps.
  virtual void Commit(Done<RestoreResult> done) = 0;
};

class Checkpoints {
 public:
  virtual ~Checkpoints() = default;

  virtual void List(Done<CheckpointList> done) = 0;

  // Has one written at the next boundary, or at once where the node stands at
  // one.
  // Errors: FAILED_PRECONDITION says why there is nothing to write;
  // RESOURCE_EXHAUSTED: the disk is full; CANCELLED when `begin` said no.
  virtual void Save(Begin begin, Done<CheckpointInfo> done) = 0;

  // Opens the newest that is whole.
  // Errors: NOT_FOUND: there is none.
  virtual void Open(Done<std::unique_ptr<CheckpointSource>> done) = 0;

  // Errors: FAILED_PRECONDITION: the node trains, or cannot go on from any;
  // INVALID_ARGUMENT: longer than any checkpoint of the plan;
  // RESOURCE_EXHAUSTED: another one is being restored, or the disk is full. The
  // sink tells what does not fit.
  virtual void Restore(const RestoreRequest& request,
                       Done<std::unique_ptr<CheckpointSink>> done) = 0;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_CHECKPOINTS_H_
