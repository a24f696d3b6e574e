// Port: the few things the daemon does with its state directory, so that the
// simulator can tear writes. Files are read and written piece by piece: a state
// of a gigabyte never stands in memory as one string.
//
// Implementations: store/disk_files.h and simports/sim_files.h; both pass
// tests/contract/files_contract.h.
#ifndef DFL_PORTS_FILES_H_
#define DFL_PORTS_FILES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace dfl::ports {

// A file that is open for reading. It reads what was there when it was opened,
// also after the file has been replaced or removed. Thread-compatible; does not
// outlive its Files.
class FileReader {
 public:
  virtual ~FileReader() = default;

  virtual int64_t size() const = 0;

  // Fills `out` with the bytes from `offset` on.
  // Errors: OUT_OF_RANGE when the range passes the end; INTERNAL with the
  // system's cause.
  virtual absl::Status Read(int64_t offset, absl::Span<char> out) = 0;
};

// A file that is being written, and appears under its name at once and whole.
// Destroyed without a Commit it leaves everything as it was. Thread-compatible;
// does not outlive its Files.
class FileWriter {
 public:
  virtual ~FileWriter() = default;

  // Errors: as Commit; after one, Commit fails as well.
  virtual absl::Status Append(absl::string_view piece) = 0;

  // Replaces the file so that after a crash either the old or the new content
  // is there (temporary file, fsync, rename, fsync of the directory). Once.
  // Errors: RESOURCE_EXHAUSTED when the disk is full (the old content stays);
  // INTERNAL with the system's cause.
  virtual absl::Status Commit() = 0;
};

// Thread-compatible. Names are relative to the state directory, no slashes. One
// writer a name at a time.
class Files {
 public:
  // The longest file that Read takes.
  static constexpr int64_t kMaxWholeBytes = int64_t{64} << 20;

  virtual ~Files() = default;

  // Errors: NOT_FOUND; INTERNAL with the system's cause.
  virtual absl::StatusOr<std::unique_ptr<FileReader>> Open(
      const std::string& name) = 0;

  // Errors: as FileWriter::Commit.
  virtual absl::StatusOr<std::unique_ptr<FileWriter>> Replace(
      const std::string& name) = 0;

  // Absent is OK.
  virtual absl::Status Remove(const std::string& name) = 0;

  // Gives the file another name, in place of what has that name.
  // Errors: NOT_FOUND; INTERNAL with the system's cause.
  virtual absl::Status Rename(const std::string& from,
                              const std::string& to) = 0;

  // A small file as a whole.
  // Errors: as Open; INTERNAL when it is longer than kMaxWholeBytes.
  absl::StatusOr<std::string> Read(const std::string& name);

  // Replaces a small file as a whole.
  // Errors: as FileWriter::Commit.
  absl::Status WriteAtomically(const std::string& name,
                               absl::string_view content);
};

}  // namespace dfl::ports

#endif  // DFL_PORTS_FILES_H_
