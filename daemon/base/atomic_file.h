// A file that appears under its name only when it is complete.
#ifndef DFL_BASE_ATOMIC_FILE_H_
#define DFL_BASE_ATOMIC_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl {

// Why a call of the system on `path` failed, from errno: "PATH: cannot DOING:
// CAUSE", and what a person may do about it. NOT_FOUND, PERMISSION_DENIED,
// RESOURCE_EXHAUSTED when the disk is full, else INTERNAL.
absl::Status FileError(absl::string_view path, absl::string_view doing);

class AtomicFile {
 public:
  // Makes a temporary file of a free name beside `path`; it gets the rights of
  // a plain file.
  // Errors: as FileError.
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(std::string path);
  // The same under a name that the caller chooses, in the same folder, readable
  // by its owner alone. What an interrupted write left there is overwritten.
  static absl::StatusOr<std::unique_ptr<AtomicFile>> CreatePrivate(
      std::string path, std::string temporary);
  // Removes the temporary file unless it was committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Errors: as FileError; Commit fails then, too.
  absl::Status Append(absl::string_view data);
  // Syncs it and replaces `path` by it.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, int fd);

  const std::string path_;
  const std::string temporary_;
  int fd_;
  absl::Status status_;
};

}  // namespace dfl

#endif  // DFL_BASE_ATOMIC_FILE_H_
