// A library to be preloaded (LD_PRELOAD) into a daemon, so that it dies as by
// kill -9 at a chosen write to its folder. Every call that changes something
// there is a point: a file that is made, bytes, sync, rename, removal, the
// sync of the folder.
//
//   CRASH_FOLDER  the folder, without a slash at its end
//   CRASH_AT      the point, from 1: it dies before the call; 0: never
//   CRASH_TORN    1: of bytes that are to be written the first half is
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string Environment(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

struct Settings {
  std::string folder = Environment("CRASH_FOLDER");
  long at = std::atol(Environment("CRASH_AT").c_str());
  bool torn = Environment("CRASH_TORN") == "1";
};

const Settings& settings() {
  static const Settings* const kSettings = new Settings;
  return *kSettings;
}

std::atomic<long> points{0};

bool IsInside(const std::string& path) {
  const std::string& folder = settings().folder;
  return !folder.empty() && path.compare(0, folder.size(), folder) == 0 &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string PathOf(int fd) {
  char name[64];
  char path[4096];
  std::snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(name, path, sizeof(path));
  return length < 0 ? "" : std::string(path, static_cast<size_t>(length));
}

// Of a path that may be relative to `folder`.
std::string PathAt(int folder, const char* path) {
  if (path[0] == '/' || folder == AT_FDCWD) return path;
  return PathOf(folder) + "/" + path;
}

// Whether the process is to die at this point.
bool Counts(const std::string& path) {
  return settings().at > 0 && IsInside(path) && ++points == settings().at;
}

[[noreturn]] void Die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & O_CREAT) == 0
             ? 0
             : static_cast<mode_t>(va_arg(arguments, unsigned));
}

void MayMake(const std::string& path, int flags) {
  if ((flags & (O_CREAT | O_TRUNC)) != 0 && Counts(path)) Die();
}

}  // namespace

// Each takes the place of the function of that name in the C library.
extern "C" {

int Open(const char* path, int flags, ...) __asm__("open");
int OpenAt(int folder, const char* path, int flags, ...) __asm__("openat");
ssize_t Write(int fd, const void* bytes, size_t size) __asm__("write");
int Sync(int fd) __asm__("fsync");
int SyncData(int fd) __asm__("fdatasync");
int Truncate(int fd, off_t length) __asm__("ftruncate");
int Rename(const char* from, const char* to) __asm__("rename");
int RenameAt(int from_folder, const char* from, int to_folder,
             const char* to) __asm__("renameat");
int UnlinkAt(int folder, const char* path, int flags) __asm__("unlinkat");
int Unlink(const char* path) __asm__("unlink");

int Open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  MayMake(path, flags);
  static const auto kNext = Next<int (*)(const char*, int, mode_t)>("open");
  return kNext(path, flags, mode);
}

int OpenAt(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  MayMake(PathAt(folder, path), flags);
  static const auto kNext =
      Next<int (*)(int, const char*, int, mode_t)>("openat");
  return kNext(folder, path, flags, mode);
}

ssize_t Write(int fd, const void* bytes, size_t size) {
  static const auto kNext =
      Next<ssize_t (*)(int, const void*, size_t)>("write");
  if (settings().at > 0 && fd > 2 && Counts(PathOf(fd))) {
    if (settings().torn) {
      (void)!kNext(fd, bytes, size / 2);
      fsync(fd);
    }
    Die();
  }
  return kNext(fd, bytes, size);
}

int Sync(int fd) {
  static const auto kNext = Next<int (*)(int)>("fsync");
  if (settings().at > 0 && Counts(PathOf(fd))) Die();
  return kNext(fd);
}

int SyncData(int fd) {
  static const auto kNext = Next<int (*)(int)>("fdatasync");
  if (settings().at > 0 && Counts(PathOf(fd))) Die();
  return kNext(fd);
}

int Truncate(int fd, off_t length) {
  static const auto kNext = Next<int (*)(int, off_t)>("ftruncate");
  if (settings().at > 0 && Counts(PathOf(fd))) Die();
  return kNext(fd, length);
}

int Rename(const char* from, const char* to) {
  static const auto kNext = Next<int (*)(const char*, const char*)>("rename");
  if (Counts(to)) Die();
  return kNext(from, to);
}

int RenameAt(int from_folder, const char* from, int to_folder, const char* to) {
  static const auto kNext =
      Next<int (*)(int, const char*, int, const char*)>("renameat");
  if (Counts(PathAt(to_folder, to))) Die();
  return kNext(from_folder, from, to_folder, to);
}

int UnlinkAt(int folder, const char* path, int flags) {
  static const auto kNext = Next<int (*)(int, const char*, int)>("unlinkat");
  if (Counts(PathAt(folder, path))) Die();
  return kNext(folder, path, flags);
}

int Unlink(const char* path) {
  static const auto kNext = Next<int (*)(const char*)>("unlink");
  if (Counts(path)) Die();
  return kNext(path);
}

}  // extern "C"
