// A checkpoint file that a person brings, as it comes in, piece by piece. It is
// in a file of its own, which is no checkpoint of the node's until
// CheckpointFiles::Place, and goes when this goes.
//
// What its head says is checked as soon as the head is there, before the
// vectors are sent.
#ifndef DFL_STORE_CHECKPOINT_UPLOAD_H_
#define DFL_STORE_CHECKPOINT_UPLOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/ports/files.h"
#include "daemon/runtime/checkpoints/checkpoint.h"
#include "daemon/store/checkpoint_format.h"

namespace dfl::store {

// One call at a time, from any thread.
class CheckpointUpload {
 public:
  // Whether the file is wanted, by its head.
  using CheckHead = std::function<absl::Status(const ReadHead&)>;

  // Opens the file `name` for `total_bytes`. What comes is written under
  // `generation`. `hold` lives as long as this. `files` must outlive it.
  // Errors: as ports::Files::Replace.
  static absl::StatusOr<std::unique_ptr<CheckpointUpload>> Begin(
      ports::Files& files, std::string name, uint64_t generation,
      int64_t total_bytes, CheckHead check, std::shared_ptr<void> hold);
  // Removes what is not placed.
  ~CheckpointUpload();
  CheckpointUpload(const CheckpointUpload&) = delete;
  CheckpointUpload& operator=(const CheckpointUpload&) = delete;

  // The next piece of the file.
  // Errors: INVALID_ARGUMENT: it is no checkpoint, or torn; FAILED_PRECONDITION
  // when a newer dfld wrote it; as CheckHead; RESOURCE_EXHAUSTED when the disk
  // is full; as ports::FileWriter.
  absl::Status Append(absl::string_view data);

  // After all pieces: reads back what was written, all of it.
  // Errors: as Append.
  absl::StatusOr<runtime::Checkpoint> Finish();

 private:
  CheckpointUpload(ports::Files& files, std::string name, uint64_t generation,
                   int64_t total_bytes, CheckHead check,
                   std::shared_ptr<void> hold,
                   std::unique_ptr<ports::FileWriter> writer);
  // Looks whether the head is there by now.
  absl::Status ReadStart();

  ports::Files& files_;
  const std::string name_;
  const uint64_t generation_;
  const int64_t total_bytes_;
  const CheckHead check_;
  const std::shared_ptr<void> hold_;
  std::unique_ptr<ports::FileWriter> writer_;
  std::string start_;   // what has come, until the head is whole
  bool begun_ = false;  // the head is written
  bool there_ = false;  // the file is
};

}  // namespace dfl::store

#endif  // DFL_STORE_CHECKPOINT_UPLOAD_H_
