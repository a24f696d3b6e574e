#include "daemon/learner/fingerprint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/sha256.h"

namespace dfl::learner {
namespace {

void AddTensors(absl::string_view what,
                const std::vector<ports::TensorInfo>& tensors, Sha256* hash) {
  for (const ports::TensorInfo& tensor : tensors) {
    hash->Update(absl::StrCat(what, " ", tensor.name, " float32 [",
                              absl::StrJoin(tensor.shape, ","), "]\n"));
  }
}

absl::Status SystemError(const std::string& path) {
  return absl::ErrnoToStatus(
      errno, absl::StrCat(path,
                          ": cannot be read; allowed: a TorchScript file "
                          "that the daemon's user may read"));
}

}  // namespace

std::string Fingerprint(const ResolvedSpec& spec, const ports::ModelInfo& info,
                        absl::string_view file_hash) {
  Sha256 hash;
  hash.Update("dfl model 1\n");
  hash.Update(CanonicalText(spec));
  AddTensors("parameter", info.parameters, &hash);
  AddTensors("buffer", info.buffers, &hash);
  hash.Update(absl::StrCat("file ", file_hash, "\n"));
  return hash.HexDigest();
}

absl::StatusOr<std::string> HashFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return SystemError(path);
  struct stat info{};
  if (::fstat(fd, &info) != 0) {
    const absl::Status status = SystemError(path);
    ::close(fd);
    return status;
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is not a regular file; allowed: a TorchScript file"));
  }
  Sha256 hash;
  std::vector<char> block(size_t{1} << 18);
  while (true) {
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const absl::Status status = SystemError(path);
      ::close(fd);
      return status;
    }
    if (got == 0) break;
    hash.Update(absl::string_view(block.data(), static_cast<size_t>(got)));
  }
  ::close(fd);
  return hash.HexDigest();
}

}  // namespace dfl::learner
