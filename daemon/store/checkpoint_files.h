// runtime::CheckpointStore on files: two generations that are written in turn,
// so that a write that went wrong leaves the one before.
//
//   checkpoint.0, checkpoint.1
//
// A file, little-endian:
//   "DFLCKPT\n"  u32 format version, 1 today
//   u32 length of the head, and the head: dfl.storage.v1.CheckpointHead
//   u32 CRC-32C of all before
//   parameters, gradient [n each] and buffers [b], fp32
//   the algorithm's state (core/algorithm/algorithm_state.h)
//   u32 CRC-32C of these
//
// It is written and read in pieces; what is written is never in memory a second
// time. A file that is broken, foreign or of a newer version is set aside as
// checkpoint.0.aside when it is found, and the other one is used.
#ifndef DFL_STORE_CHECKPOINT_FILES_H_
#define DFL_STORE_CHECKPOINT_FILES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "daemon/ports/files.h"
#include "daemon/runtime/checkpoints/checkpoint.h"

namespace dfl::store {

// Writes `checkpoint` as the file `name`, unless `stop` becomes true meanwhile.
// Errors: as ports::FileWriter::Commit; CANCELLED: stopped.
absl::Status WriteCheckpoint(ports::Files& files, const std::string& name,
                             uint64_t generation,
                             const runtime::Checkpoint& checkpoint,
                             const std::atomic<bool>& stop);

struct ReadHead {
  uint64_t generation = 0;  // of the writes, from 1
  runtime::CheckpointHead head;
};

// The head of a file that is as long as it should be.
// Errors: NOT_FOUND; DATA_LOSS says in what way it is broken;
// FAILED_PRECONDITION when a newer dfld wrote it; as ports::FileReader.
absl::StatusOr<ReadHead> ReadCheckpointHead(ports::Files& files,
                                            const std::string& name);

// The whole of it.
// Errors: as ReadCheckpointHead.
absl::StatusOr<runtime::Checkpoint> ReadCheckpoint(ports::Files& files,
                                                   const std::string& name);

// Thread-safe.
class CheckpointFiles final : public runtime::CheckpointStore {
 public:
  // `files` must outlive it.
  explicit CheckpointFiles(ports::Files& files) : files_(files) {}

  // One of a step that was written last is written in its place, which leaves
  // the one before. Errors: also as WriteCheckpoint.
  absl::Status Write(const runtime::Checkpoint& checkpoint) override;
  // Whatever is being written, or is to be, is not.
  void Stop() { stop_.store(true); }
  std::vector<runtime::CheckpointHead> List(
      std::vector<std::string>& notes) override;
  absl::StatusOr<runtime::Checkpoint> Read(const std::string& run_id,
                                           int64_t step) override;

 private:
  // The slot that the next one is written to.
  size_t NextSlot(const runtime::CheckpointHead& head) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Looks at what is there, until all of it could be read.
  void Look(std::vector<std::string>& notes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes a file that cannot be used out of the way.
  void SetAside(int slot, const absl::Status& why,
                std::vector<std::string>& notes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ports::Files& files_;
  std::atomic<bool> stop_{false};
  absl::Mutex mutex_;
  bool looked_ ABSL_GUARDED_BY(mutex_) = false;
  // By slot; nullopt: there is none.
  std::array<std::optional<ReadHead>, 2> heads_ ABSL_GUARDED_BY(mutex_);
  // There is something that could not be read now; it may be whole.
  std::array<bool, 2> unread_ ABSL_GUARDED_BY(mutex_) = {false, false};
};

}  // namespace dfl::store

#endif  // DFL_STORE_CHECKPOINT_FILES_H_
