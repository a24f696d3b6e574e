// A file that is only in memory, for decoders that take a path.
#ifndef DFL_TESTS_FUZZ_MEMORY_FILE_H_
#define DFL_TESTS_FUZZ_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/check.h"

namespace dfl::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(absl::string_view bytes)
      : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    DFL_CHECK(fd_ >= 0);
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      DFL_CHECK(written > 0);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // For this process alone, while this lives.
  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }

 private:
  const int fd_;
};

}  // namespace dfl::fuzz

#endif  // DFL_TESTS_FUZZ_MEMORY_FILE_H_
