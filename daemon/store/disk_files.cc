#include "daemon/store/disk_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/status_macros.h"

namespace dfl::store {
namespace {

constexpr char kLockName[] = "lock";
// Of files that are being written; no name of a caller begins like it.
constexpr char kAsidePrefix[] = ".writing-";

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

absl::Status MakeFolders(const std::string& folder) {
  for (size_t at = folder.find('/', 1);; at = folder.find('/', at + 1)) {
    const std::string part = folder.substr(0, at);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      const absl::Status status = FileError(part, "create the folder");
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

class Reader final : public ports::FileReader {
 public:
  Reader(std::string path, int fd, int64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}

  int64_t size() const override { return size_; }

  absl::Status Read(int64_t offset, absl::Span<char> out) override {
    if (offset < 0 || offset > size_ ||
        static_cast<int64_t>(out.size()) > size_ - offset) {
      return absl::OutOfRangeError(
          absl::StrCat(path_, ": it ends after ", size_, " bytes"));
    }
    while (!out.empty()) {
      const ssize_t got = pread(fd_.get(), out.data(), out.size(), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FileError(path_, "read");
      if (got == 0) {
        return absl::InternalError(
            absl::StrCat(path_, ": it became shorter while it was read"));
      }
      offset += got;
      out.remove_prefix(static_cast<size_t>(got));
    }
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const Descriptor fd_;
  const int64_t size_;
};

}  // namespace

class DiskFiles::Writer final : public ports::FileWriter {
 public:
  Writer(DiskFiles& files, std::unique_ptr<AtomicFile> file)
      : files_(files), file_(std::move(file)) {}

  absl::Status Append(absl::string_view piece) override {
    return file_->Append(piece);
  }
  absl::Status Commit() override {
    DFL_RETURN_IF_ERROR(file_->Commit());
    return files_.SyncFolder();
  }

 private:
  DiskFiles& files_;
  const std::unique_ptr<AtomicFile> file_;
};

absl::StatusOr<std::unique_ptr<DiskFiles>> DiskFiles::OpenFolder(
    const std::string& folder) {
  if (folder.empty()) {
    return absl::InvalidArgumentError("the state folder has no name");
  }
  DFL_RETURN_IF_ERROR(MakeFolders(folder));
  Descriptor folder_fd(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder_fd.get() < 0) return FileError(folder, "open the folder");
  const std::string path = absl::StrCat(folder, "/", kLockName);
  Descriptor lock_fd(
      openat(folder_fd.get(), kLockName, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock_fd.get() < 0) return FileError(path, "open");
  if (flock(lock_fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FileError(path, "lock");
    const std::string holder = HolderOf(lock_fd.get());
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": in use by another dfld",
                     holder.empty() ? "" : absl::StrCat(" (pid ", holder, ")"),
                     "; stop it, or give this one a state_dir of its own"));
  }
  if (ftruncate(lock_fd.get(), 0) != 0) return FileError(path, "write");
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (write(lock_fd.get(), pid.data(), pid.size()) !=
      static_cast<ssize_t>(pid.size())) {
    return FileError(path, "write");
  }
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

absl::StatusOr<std::unique_ptr<ports::FileReader>> DiskFiles::Open(
    const std::string& name) {
  DFL_RETURN_IF_ERROR(CheckName(name));
  Descriptor fd(openat(folder_fd_, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return FileError(PathOf(name), "open");
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return FileError(PathOf(name), "open");
  return std::make_unique<Reader>(PathOf(name), fd.Release(),
                                  static_cast<int64_t>(info.st_size));
}

absl::StatusOr<std::unique_ptr<ports::FileWriter>> DiskFiles::Replace(
    const std::string& name) {
  DFL_RETURN_IF_ERROR(CheckName(name));
  DFL_ASSIGN_OR_RETURN(
      std::unique_ptr<AtomicFile> file,
      AtomicFile::CreatePrivate(
          PathOf(name), absl::StrCat(folder_, "/", kAsidePrefix, name)));
  return std::make_unique<Writer>(*this, std::move(file));
}

absl::Status DiskFiles::SyncFolder() {
  if (fsync(folder_fd_) == 0) return absl::OkStatus();
  return FileError(folder_, "sync");
}

absl::Status DiskFiles::Remove(const std::string& name) {
  DFL_RETURN_IF_ERROR(CheckName(name));
  if (unlinkat(folder_fd_, name.c_str(), 0) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return FileError(PathOf(name), "remove");
  }
  return SyncFolder();
}

absl::Status DiskFiles::Rename(const std::string& from, const std::string& to) {
  DFL_RETURN_IF_ERROR(CheckName(from));
  DFL_RETURN_IF_ERROR(CheckName(to));
  if (renameat(folder_fd_, from.c_str(), folder_fd_, to.c_str()) != 0) {
    return FileError(PathOf(from), "rename");
  }
  return SyncFolder();
}

}  // namespace dfl::store
