// A file that appears under its name only when it is complete, and outputs that
// are no plain files.
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

// Whether `path` stands for a file that a process has open, as /dev/stdout
// does.
bool NamesDescriptor(const std::string& path);

class AtomicFile {
 public:
  // Who may read a new file.
  enum class Readers { kByUmask, kAll };

  // Makes a temporary file in the folder of `path`, or of the file that `path`
  // links to: without a name where the file system can do that, so that nothing
  // is left of it after a crash. It gets mode, owner and group of the file that
  // it will replace, as far as this process may give them, and never more
  // rights; a new one gets those of a plain file, or may be read by all.
  // Errors: as FileError; INVALID_ARGUMENT when `path` is there and no plain
  // file: it would be replaced.
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(
      std::string path, Readers readers = Readers::kByUmask);
  // Replaces `path` by `content`. Errors: as Create and Commit.
  static absl::Status Write(std::string path, absl::string_view content,
                            Readers readers = Readers::kByUmask);
  // As Create, under a name that the caller chooses, in the same folder,
  // readable by its owner alone. What an interrupted write left there is
  // overwritten, and so is whatever `path` is.
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
  std::string temporary_;  // "": it has no name yet
  int fd_;
  absl::Status status_;
};

// Where a person wants a result: an AtomicFile for what is a plain file or not
// there yet; a FIFO, a terminal, /dev/null or another character device, and a
// descriptor of this process (/dev/stdout), are written to as they are.
class OutputFile {
 public:
  // A FIFO waits for its reader.
  // Errors: as AtomicFile::Create; INVALID_ARGUMENT for a folder, a socket and
  // a block device.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Whether it appears only when it is complete.
  bool atomic() const { return file_ != nullptr; }
  // Errors: as FileError.
  absl::Status Append(absl::string_view data);
  absl::Status Commit();

 private:
  OutputFile(std::string path, std::unique_ptr<AtomicFile> file, int fd);

  const std::string path_;
  const std::unique_ptr<AtomicFile> file_;  // null: fd_
  int fd_;
};

}  // namespace dfl

#endif  // DFL_BASE_ATOMIC_FILE_H_
