// A checkpoint as a file, little-endian:
//
//   "DFLCKPT\n"  u32 format version
//   u32 length of the head, and the head: dfl.storage.v1.CheckpointHead
//   u32 CRC-32C of all before
//   parameters, gradient [n each] and buffers [b], fp32
//   the algorithm's state (core/algorithm/algorithm_state.h)
//   u32 CRC-32C of these
//
// It is written and read in pieces; what is written is never in memory a second
// time.
//
// Version rule: a dfld writes one version and reads that and the one before. So
// a file that a person has kept outlives an upgrade, and what differs between
// the two is told apart where the head is parsed and the body is read. Fields
// of the head are only added, and that takes no new version.
#ifndef DFL_STORE_CHECKPOINT_FORMAT_H_
#define DFL_STORE_CHECKPOINT_FORMAT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/ports/files.h"
#include "daemon/runtime/checkpoints/checkpoint.h"
#include "daemon/runtime/checkpoints/restore_check.h"

namespace dfl::store {

// The version that is written, and the oldest that is read.
inline constexpr uint32_t kCheckpointFormat = 1;
inline constexpr uint32_t kOldestCheckpointFormat = 1;

struct ReadHead {
  uint64_t generation = 0;  // of the writes, from 1
  runtime::CheckpointHead head;
  runtime::CheckpointLengths lengths;
  int64_t bytes = 0;  // of the whole file
};

// Writes `checkpoint` as the file `name`, unless `stop` becomes true meanwhile.
// Errors: as ports::FileWriter::Commit; CANCELLED: stopped.
absl::StatusOr<ReadHead> WriteCheckpoint(ports::Files& files,
                                         const std::string& name,
                                         uint64_t generation,
                                         const runtime::Checkpoint& checkpoint,
                                         const std::atomic<bool>& stop);

// The head of a file that is as long as it should be.
// Errors: NOT_FOUND; DATA_LOSS says in what way it is broken;
// FAILED_PRECONDITION when a newer dfld wrote it, or one that is too old; as
// ports::FileReader.
absl::StatusOr<ReadHead> ReadCheckpointHead(ports::Files& files,
                                            const std::string& name);

// The whole of it.
// Errors: as ReadCheckpointHead; INVALID_ARGUMENT when its algorithm's state is
// of another version.
absl::StatusOr<runtime::Checkpoint> ReadCheckpoint(ports::Files& files,
                                                   const std::string& name);

// Reads the whole of it and keeps nothing.
// Errors: as ReadCheckpointHead, where it is not whole.
absl::Status CheckWhole(ports::FileReader& reader);

// The beginning of a file of `total_bytes` that comes in pieces, up to where
// the vectors begin.
struct CheckpointStart {
  ReadHead read;
  size_t length = 0;  // in the file
  // The same as it stands in a file of another generation.
  std::string renumbered;
};

// Parses `bytes`, all that has come. Nullopt: more must come first.
// `generation`: of CheckpointStart::renumbered.
// Errors: as ReadCheckpointHead.
absl::StatusOr<std::optional<CheckpointStart>> ParseStart(
    absl::string_view bytes, int64_t total_bytes, uint64_t generation);

}  // namespace dfl::store

#endif  // DFL_STORE_CHECKPOINT_FORMAT_H_
