#include "daemon/store/disk_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace dfl::store {
namespace {

constexpr char kLockName[] = "lock";
// Of files that are being written; no name of a caller begins like it.
constexpr char kAsidePrefix[] = ".writing-";

// Why a call on `path` failed, from errno.
absl::Status SystemError(absl::string_view path, absl::string_view doing) {
  const int code = errno;
  const std::string text =
      absl::StrCat(path, ": cannot ", doing, ": ", std::strerror(code));
  switch (code) {
    case ENOENT:
      return absl::NotFoundError(text);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(
          absl::StrCat(text, "; what was there before is kept"));
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::Status CheckName(const std::string& name) {
  bool fits = !name.empty() && name.size() <= 100 && name[0] != '.' &&
              name != kLockName;
  for (const char c : name) {
    fits = fits && (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                    c == '_' || c == '-' || c == '.');
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", absl::string_view(name).substr(0, 100),
      "\" is no name of a file; allowed: 1 to 100 letters, digits, '_', '-' "
      "and '.', the first not '.', and not \"",
      kLockName, "\""));
}

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

absl::Status WriteAll(int fd, absl::string_view content,
                      absl::string_view path) {
  while (!content.empty()) {
    const ssize_t wrote = write(fd, content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return SystemError(path, "write");
    content.remove_prefix(static_cast<size_t>(wrote));
  }
  return absl::OkStatus();
}

absl::Status MakeFolders(const std::string& folder) {
  for (size_t at = folder.find('/', 1);; at = folder.find('/', at + 1)) {
    const std::string part = folder.substr(0, at);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      const absl::Status status = SystemError(part, "create the folder");
      // The parent is there by now, or a file stands in its place.
      if (absl::IsNotFound(status)) {
        return absl::InternalError(status.message());
      }
      return status;
    }
    if (at == std::string::npos) return absl::OkStatus();
  }
}

// The pid written in the lock file; "" when it holds none.
std::string HolderOf(int lock_fd) {
  char text[32];
  const ssize_t got = pread(lock_fd, text, sizeof(text), 0);
  std::string pid;
  for (ssize_t i = 0; i < got; ++i) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(text[i]))) break;
    pid += text[i];
  }
  return pid;
}

// Removes what writes that never ended left in the folder.
void ClearAside(int folder_fd) {
  const int copy = dup(folder_fd);
  if (copy < 0) return;
  DIR* open = fdopendir(copy);
  if (open == nullptr) {
    close(copy);
    return;
  }
  std::vector<std::string> left;
  while (const dirent* entry = readdir(open)) {
    if (absl::StartsWith(entry->d_name, kAsidePrefix)) {
      left.emplace_back(entry->d_name);
    }
  }
  closedir(open);
  for (const std::string& name : left) unlinkat(folder_fd, name.c_str(), 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskFiles>> DiskFiles::Open(
    const std::string& folder) {
  if (folder.empty()) {
    return absl::InvalidArgumentError("the state folder has no name");
  }
  DFL_RETURN_IF_ERROR(MakeFolders(folder));
  Descriptor folder_fd(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder_fd.get() < 0) return SystemError(folder, "open the folder");
  const std::string path = absl::StrCat(folder, "/", kLockName);
  Descriptor lock_fd(
      openat(folder_fd.get(), kLockName, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock_fd.get() < 0) return SystemError(path, "open");
  if (flock(lock_fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return SystemError(path, "lock");
    const std::string holder = HolderOf(lock_fd.get());
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": in use by another dfld",
                     holder.empty() ? "" : absl::StrCat(" (pid ", holder, ")"),
                     "; stop it, or give this one a state_dir of its own"));
  }
  if (ftruncate(lock_fd.get(), 0) != 0) return SystemError(path, "write");
  DFL_RETURN_IF_ERROR(
      WriteAll(lock_fd.get(), absl::StrCat(getpid(), "\n"), path));
  ClearAside(folder_fd.get());
  return std::unique_ptr<DiskFiles>(
      new DiskFiles(folder, folder_fd.Release(), lock_fd.Release()));
}

DiskFiles::DiskFiles(std::string folder, int folder_fd, int lock_fd)
    : folder_(std::move(folder)), folder_fd_(folder_fd), lock_fd_(lock_fd) {}

DiskFiles::~DiskFiles() {
  close(lock_fd_);
  close(folder_fd_);
}

std::string DiskFiles::PathOf(const std::string& name) const {
  return absl::StrCat(folder_, "/", name);
}

absl::StatusOr<std::string> DiskFiles::Read(const std::string& name) {
  DFL_RETURN_IF_ERROR(CheckName(name));
  const Descriptor fd(openat(folder_fd_, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return SystemError(PathOf(name), "open");
  std::string content;
  std::vector<char> buffer(size_t{1} << 16);
  for (;;) {
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(PathOf(name), "read");
    if (got == 0) return content;
    content.append(buffer.data(), static_cast<size_t>(got));
    if (content.size() > kMaxFileBytes) {
      return absl::InternalError(absl::StrCat(PathOf(name), ": longer than ",
                                              kMaxFileBytes,
                                              " bytes: not a file of dfld's"));
    }
  }
}

absl::Status DiskFiles::WriteAside(const std::string& name,
                                   absl::string_view content) {
  const std::string aside = absl::StrCat(kAsidePrefix, name);
  const Descriptor fd(openat(folder_fd_, aside.c_str(),
                             O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (fd.get() < 0) return SystemError(PathOf(name), "write");
  DFL_RETURN_IF_ERROR(WriteAll(fd.get(), content, PathOf(name)));
  if (fsync(fd.get()) != 0) return SystemError(PathOf(name), "sync");
  if (renameat(folder_fd_, aside.c_str(), folder_fd_, name.c_str()) != 0) {
    return SystemError(PathOf(name), "replace");
  }
  return absl::OkStatus();
}

absl::Status DiskFiles::SyncFolder() {
  if (fsync(folder_fd_) == 0) return absl::OkStatus();
  return SystemError(folder_, "sync");
}

absl::Status DiskFiles::WriteAtomically(const std::string& name,
                                        absl::string_view content) {
  DFL_RETURN_IF_ERROR(CheckName(name));
  const absl::Status status = WriteAside(name, content);
  if (!status.ok()) {
    unlinkat(folder_fd_, absl::StrCat(kAsidePrefix, name).c_str(), 0);
    return status;
  }
  return SyncFolder();
}

absl::Status DiskFiles::Remove(const std::string& name) {
  DFL_RETURN_IF_ERROR(CheckName(name));
  if (unlinkat(folder_fd_, name.c_str(), 0) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return SystemError(PathOf(name), "remove");
  }
  return SyncFolder();
}

}  // namespace dfl::store
