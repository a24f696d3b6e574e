// ports::Files on a directory of a real disk.
#ifndef DFL_STORE_DISK_FILES_H_
#define DFL_STORE_DISK_FILES_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/ports/files.h"

namespace dfl::store {

// Thread-safe for different names; for one name as ports::Files says. Holds the
// directory's lock for as long as it lives; the system gives the lock back
// however the process ends.
class DiskFiles final : public ports::Files {
 public:
  // Creates `folder` (mode 0700, its parents too) where it is absent, locks it
  // and clears what an interrupted write left behind.
  // Errors: FAILED_PRECONDITION when another process holds it (names its pid);
  // PERMISSION_DENIED; RESOURCE_EXHAUSTED when the disk is full; INTERNAL with
  // the system's cause.
  static absl::StatusOr<std::unique_ptr<DiskFiles>> OpenFolder(
      const std::string& folder);

  ~DiskFiles() override;
  DiskFiles(const DiskFiles&) = delete;
  DiskFiles& operator=(const DiskFiles&) = delete;

  // Names are 1 to 100 letters, digits, '_', '-' and '.', and do not begin with
  // '.' (INVALID_ARGUMENT); "lock" is taken.
  absl::StatusOr<std::unique_ptr<ports::FileReader>> Open(
      const std::string& name) override;
  absl::StatusOr<std::unique_ptr<ports::FileWriter>> Replace(
      const std::string& name) override;
  absl::Status Remove(const std::string& name) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;

  const std::string& folder() const { return folder_; }

 private:
  class Writer;

  DiskFiles(std::string folder, int folder_fd, int lock_fd);

  absl::Status SyncFolder();
  std::string PathOf(const std::string& name) const;

  const std::string folder_;
  const int folder_fd_;
  const int lock_fd_;
};

}  // namespace dfl::store

#endif  // DFL_STORE_DISK_FILES_H_
