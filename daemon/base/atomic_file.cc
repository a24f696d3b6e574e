#include "daemon/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

namespace {

// Of the kernel's own limit.
constexpr int kMaxLinks = 40;

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

absl::Status NoPlainFile(absl::string_view path, mode_t mode) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": is ", KindOf(mode),
                   " and would be replaced; give the path of a plain file"));
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// A place where the kernel shows what a process has open.
bool IsOfProcess(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> folder(
      realpath(FolderOf(path).c_str(), nullptr), &std::free);
  return folder != nullptr && std::strncmp(folder.get(), "/proc/", 6) == 0;
}

// N of /proc/PID/fd/N, if PID is this process; else -1.
int OwnDescriptor(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> folder(
      realpath(FolderOf(path).c_str(), nullptr), &std::free);
  int number = -1;
  if (folder == nullptr ||
      folder.get() != absl::StrCat("/proc/", getpid(), "/fd") ||
      !absl::SimpleAtoi(path.substr(path.rfind('/') + 1), &number)) {
    return -1;
  }
  return number;
}

// Where `path` leads: through links, to a name that may be free.
struct Place {
  std::string path;
  bool exists = false;
  bool is_of_process = false;  // one that stands for an open file
  int descriptor = -1;         // of this process
  struct stat info = {};       // of the file, if it exists
};

absl::StatusOr<Place> Follow(const std::string& path) {
  Place place;
  place.path = path;
  for (int links = 0; links < kMaxLinks; ++links) {
    if (lstat(place.path.c_str(), &place.info) != 0) {
      if (errno != ENOENT) return FileError(path, "look at it");
      return place;
    }
    place.exists = true;
    if (!S_ISLNK(place.info.st_mode)) return place;
    place.is_of_process = IsOfProcess(place.path);
    if (place.is_of_process) {
      place.descriptor = OwnDescriptor(place.path);
      if (stat(place.path.c_str(), &place.info) != 0) {
        return FileError(path, "look at it");
      }
      return place;
    }
    std::string to(4096, '\0');
    const ssize_t size = readlink(place.path.c_str(), to.data(), to.size());
    if (size <= 0) return FileError(path, "follow the link");
    to.resize(static_cast<size_t>(size));
    place.path =
        to[0] == '/' ? to : absl::StrCat(FolderOf(place.path), "/", to);
    place.exists = false;
  }
  errno = ELOOP;
  return FileError(path, "follow the links");
}

// Gives a file the rights of the one it replaces, but never to a group that
// could not be kept.
void TakeRights(int fd, const struct stat& of) {
  mode_t mode = of.st_mode & 0777;
  struct stat own = {};
  if (fchown(fd, of.st_uid, of.st_gid) != 0 &&
      fchown(fd, static_cast<uid_t>(-1), of.st_gid) != 0 &&
      (fstat(fd, &own) != 0 || own.st_gid != of.st_gid)) {
    mode &= ~static_cast<mode_t>(0070);
  }
  (void)fchmod(fd, mode);
}

absl::Status WriteAll(int fd, const std::string& path, absl::string_view data) {
  while (!data.empty()) {
    const ssize_t wrote = write(fd, data.data(), data.size());
    if (wrote >= 0) {
      data.remove_prefix(static_cast<size_t>(wrote));
    } else if (errno != EINTR) {
      return FileError(path, "write");
    }
  }
  return absl::OkStatus();
}

// Calls `make` with names beside `path` until one is free. The last result:
// -1 and errno, or what `make` returned; `name` is the name.
int UnderFreeName(const std::string& path, std::string& name,
                  absl::FunctionRef<int(const std::string&)> make) {
  constexpr int kTries = 100;
  int result = -1;
  for (int i = 0; i < kTries; ++i) {
    name = absl::StrFormat("%s.%d-%d", path, getpid(), i);
    result = make(name);
    if (result >= 0 || errno != EEXIST) break;
  }
  return result;
}

}  // namespace

bool NamesDescriptor(const std::string& path) {
  const absl::StatusOr<Place> place = Follow(path);
  return place.ok() && place->is_of_process;
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(
    std::string path, Readers readers) {
  DFL_ASSIGN_OR_RETURN(Place place, Follow(path));
  if (place.exists && (!S_ISREG(place.info.st_mode) || place.is_of_process)) {
    return NoPlainFile(path, place.info.st_mode);
  }
  std::string temporary;
  // Nobody is to read the new content with more rights than the old one had.
  const mode_t mode = place.exists ? 0600 : 0666;
  int fd = open(FolderOf(place.path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC,
                mode);
  if (fd < 0) {
    fd = UnderFreeName(place.path, temporary, [&](const std::string& name) {
      return open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    });
  }
  if (fd < 0) return FileError(path, "write");
  if (place.exists) {
    TakeRights(fd, place.info);
  } else if (readers == Readers::kAll) {
    (void)fchmod(fd, 0644);
  }
  return std::unique_ptr<AtomicFile>(
      new AtomicFile(std::move(place.path), std::move(temporary), fd));
}

absl::Status AtomicFile::Write(std::string path, absl::string_view content,
                               Readers readers) {
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                       Create(std::move(path), readers));
  DFL_RETURN_IF_ERROR(file->Append(content));
  return file->Commit();
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
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status AtomicFile::Append(absl::string_view data) {
  if (status_.ok()) status_ = WriteAll(fd_, path_, data);
  return status_;
}

absl::Status AtomicFile::Commit() {
  DFL_RETURN_IF_ERROR(status_);
  if (fsync(fd_) != 0) return FileError(path_, "sync");
  if (temporary_.empty()) {
    const std::string open_file = absl::StrCat("/proc/self/fd/", fd_);
    std::string name;
    const int linked = UnderFreeName(path_, name, [&](const std::string& free) {
      return linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, free.c_str(),
                    AT_SYMLINK_FOLLOW);
    });
    if (linked != 0) return FileError(path_, "name the file");
    temporary_ = name;
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return FileError(path_, "replace");
  }
  close(fd_);
  fd_ = -1;
  return absl::OkStatus();
}

OutputFile::OutputFile(std::string path, std::unique_ptr<AtomicFile> file,
                       int fd)
    : path_(std::move(path)), file_(std::move(file)), fd_(fd) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Open(std::string path) {
  DFL_ASSIGN_OR_RETURN(const Place place, Follow(path));
  const mode_t mode = place.info.st_mode;
  if (!place.exists || (S_ISREG(mode) && !place.is_of_process)) {
    DFL_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file,
                         AtomicFile::Create(path));
    return std::unique_ptr<OutputFile>(
        new OutputFile(std::move(path), std::move(file), -1));
  }
  if (S_ISDIR(mode) || S_ISSOCK(mode) || S_ISBLK(mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is ", KindOf(mode),
        "; allowed: a plain file, a FIFO, a character device, or - for "
        "stdout"));
  }
  // A copy of one's own descriptor goes on where that one is, and moves it.
  const int fd = place.descriptor >= 0
                     ? fcntl(place.descriptor, F_DUPFD_CLOEXEC, 0)
                     : open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return FileError(path, "write");
  return std::unique_ptr<OutputFile>(
      new OutputFile(std::move(path), nullptr, fd));
}

absl::Status OutputFile::Append(absl::string_view data) {
  return file_ != nullptr ? file_->Append(data) : WriteAll(fd_, path_, data);
}

absl::Status OutputFile::Commit() {
  if (file_ != nullptr) return file_->Commit();
  const int fd = std::exchange(fd_, -1);
  return close(fd) == 0 ? absl::OkStatus() : FileError(path_, "write");
}

}  // namespace dfl
