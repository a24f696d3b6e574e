// Port: the few things the daemon does with its state directory, so that the
// simulator can tear writes.
//
// Implementations: store/disk_files.h and simports/sim_files.h.
#ifndef DFL_PORTS_FILES_H_
#define DFL_PORTS_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl::ports {

// Thread-compatible. Names are relative to the state directory, no slashes.
class Files {
 public:
  virtual ~Files() = default;

  // Errors: NOT_FOUND; INTERNAL with the system's cause.
  virtual absl::StatusOr<std::string> Read(const std::string& name) = 0;

  // Replaces `name` so that after a crash either the old or the new content is
  // there (temporary file, fsync, rename, fsync of the directory).
  // Errors: RESOURCE_EXHAUSTED when the disk is full (the old content stays);
  // INTERNAL with the system's cause.
  virtual absl::Status WriteAtomically(const std::string& name,
                                       absl::string_view content) = 0;

  // Absent is OK.
  virtual absl::Status Remove(const std::string& name) = 0;
};

}  // namespace dfl::ports

#endif  // DFL_PORTS_FILES_H_
