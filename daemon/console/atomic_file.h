// A file that appears under its name only when it is complete.
#ifndef DFL_CONSOLE_ATOMIC_FILE_H_
#define DFL_CONSOLE_ATOMIC_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl::console {

class AtomicFile {
 public:
  // Makes a temporary file beside `path`.
  // Errors: NOT_FOUND, PERMISSION_DENIED, ... with the system's cause.
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(std::string path);
  // Removes the temporary file unless it was committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Errors: RESOURCE_EXHAUSTED when the disk is full; INTERNAL.
  absl::Status Append(absl::string_view data);
  // Syncs it and replaces `path` by it.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, int fd);

  const std::string path_;
  const std::string temporary_;
  int fd_;
};

}  // namespace dfl::console

#endif  // DFL_CONSOLE_ATOMIC_FILE_H_
