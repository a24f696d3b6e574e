#include "daemon/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace dfl {

absl::Status FileError(absl::string_view path, absl::string_view doing) {
  const int code = errno;
  const std::string text =
      absl::StrCat(path, ": cannot ", doing, ": ", std::strerror(code));
  switch (code) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(absl::StrCat(text, "; make the folder first"));
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(
          absl::StrCat(text, "; give a folder you may write to"));
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(
          absl::StrCat(text, "; what was there before is kept; make room"));
    default:
      return absl::InternalError(text);
  }
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(
    std::string path) {
  std::string temporary = absl::StrCat(path, ".XXXXXX");
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return FileError(path, "write");
  // mkostemp makes it for its owner alone; what is made here is a plain file.
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(fd, 0666 & ~mask);
  return std::unique_ptr<AtomicFile>(
      new AtomicFile(std::move(path), std::move(temporary), fd));
}

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::CreatePrivate(
    std::string path, std::string temporary) {
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return FileError(path, "write");
  return std::unique_ptr<AtomicFile>(
      new AtomicFile(std::move(path), std::move(temporary), fd));
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

absl::Status AtomicFile::Append(absl::string_view data) {
  while (status_.ok() && !data.empty()) {
    const ssize_t wrote = write(fd_, data.data(), data.size());
    if (wrote >= 0) {
      data.remove_prefix(static_cast<size_t>(wrote));
    } else if (errno != EINTR) {
      status_ = FileError(path_, "write");
    }
  }
  return status_;
}

absl::Status AtomicFile::Commit() {
  DFL_RETURN_IF_ERROR(status_);
  if (fsync(fd_) != 0) return FileError(path_, "sync");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return FileError(path_, "replace");
  }
  close(fd_);
  fd_ = -1;
  return absl::OkStatus();
}

}  // namespace dfl
