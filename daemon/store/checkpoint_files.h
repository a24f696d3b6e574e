// runtime::CheckpointStore on files: the last few generations, each in a slot
// that it is written to at once and whole, so that a write that went wrong
// leaves those before.
//
//   checkpoint.0 ... checkpoint.(keep-1)
//
// A file that is broken, foreign, or of a version that is not read
// (checkpoint_format.h) is set aside as checkpoint.0.aside when it is found,
// and the others are used.
//
// A checkpoint that a person brings comes in beside them. It is placed as the
// newest, in a slot that is free, so that all that were there are there until
// the node goes on from it:
//
//   Receive --> upload->Append ... --> upload->Finish --> Place
//           --> the node takes it: Settle;  it does not: Withdraw
#ifndef DFL_STORE_CHECKPOINT_FILES_H_
#define DFL_STORE_CHECKPOINT_FILES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/files.h"
#include "daemon/runtime/checkpoints/checkpoint.h"
#include "daemon/store/checkpoint_format.h"
#include "daemon/store/checkpoint_upload.h"

namespace dfl::store {

// A checkpoint that is kept.
struct KeptCheckpoint {
  std::string file;  // its name in the state directory
  ReadHead read;
};

// A file that was taken out of the way, or that cannot be read now.
struct AsideCheckpoint {
  std::string file;
  int64_t bytes = 0;
  std::string reason;  // "": it is not known any more
};

struct KeptCheckpoints {
  std::vector<KeptCheckpoint> whole;  // the newest first
  std::vector<AsideCheckpoint> aside;
};

// One that is open for reading.
struct OpenedCheckpoint {
  KeptCheckpoint kept;
  std::unique_ptr<ports::FileReader> reader;
};

// Thread-safe.
class CheckpointFiles final : public runtime::CheckpointStore {
 public:
  // `files` must outlive it. Removes what a restore that never ended left.
  explicit CheckpointFiles(ports::Files& files);

  // One of a step that was written last is written in its place, which leaves
  // those before. Errors: also as WriteCheckpoint.
  absl::Status Write(const runtime::Checkpoint& checkpoint,
                     int64_t keep) override;
  // Whatever is being written, or is to be, is not.
  void Stop() { stop_.store(true); }
  std::vector<runtime::CheckpointHead> List(
      std::vector<std::string>& notes) override;
  absl::StatusOr<runtime::Checkpoint> Read(const std::string& run_id,
                                           int64_t step) override;

  // For people: all that is there.
  KeptCheckpoints Kept();
  // Opens the newest that is whole.
  // Errors: NOT_FOUND: there is none; as ports::FileReader.
  absl::StatusOr<OpenedCheckpoint> OpenNewest();

  // Begins to take in a file of `total_bytes`. One at a time.
  // Errors: RESOURCE_EXHAUSTED: another one is coming in, or the disk is full;
  // as CheckpointUpload::Begin.
  absl::StatusOr<std::unique_ptr<CheckpointUpload>> Receive(
      int64_t total_bytes, CheckpointUpload::CheckHead check);
  // Makes what an upload has finished the newest checkpoint.
  // Errors: as ports::Files::Rename.
  absl::StatusOr<KeptCheckpoint> Place();
  // Of those that are there only the last `keep` stay.
  void Settle(int64_t keep);
  // Removes the one of that generation.
  void Withdraw(uint64_t generation);

 private:
  // One more than is ever kept: for what is placed before others go.
  static constexpr size_t kSlots = core::CheckpointSpec::kMostKept + 1;

  // The slots in use, the newest generation first.
  std::vector<size_t> Newest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t NextGeneration() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsFree(size_t slot) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !heads_[slot] && unread_[slot].empty();
  }
  // The slot that the next one is written to.
  size_t NextSlot(const runtime::CheckpointHead& head, size_t keep) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Looks at what is there, until all of it could be read.
  void Look(std::vector<std::string>& notes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes all but the last `keep`, and moves those into the first slots. What
  // fails is done after the next write.
  void Prune(size_t keep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes a file that cannot be used out of the way.
  void SetAside(size_t slot, const absl::Status& why,
                std::vector<std::string>& notes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ports::Files& files_;
  std::atomic<bool> stop_{false};
  absl::Mutex mutex_;
  bool looked_ ABSL_GUARDED_BY(mutex_) = false;
  // By slot; nullopt: there is none.
  std::array<std::optional<ReadHead>, kSlots> heads_ ABSL_GUARDED_BY(mutex_);
  // Why what is there could not be read now, though it may be whole; "": it
  // could, or nothing is there.
  std::array<std::string, kSlots> unread_ ABSL_GUARDED_BY(mutex_);
  // Why the file of that slot was set aside since the start.
  std::array<std::string, kSlots> aside_ ABSL_GUARDED_BY(mutex_);
  // Of the upload that is coming in.
  std::weak_ptr<void> receiving_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::store

#endif  // DFL_STORE_CHECKPOINT_FILES_H_
