#include "daemon/learner/archive_hash.h"

#include <caffe2/serialize/inline_container.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/sha256.h"
#include "daemon/base/status_macros.h"
#include "daemon/learner/torch_errors.h"

namespace dfl::learner {
namespace {

absl::Status SystemError(const std::string& path) {
  return absl::ErrnoToStatus(
      errno, absl::StrCat(path,
                          ": cannot be read; allowed: a TorchScript file "
                          "that the daemon's user may read"));
}

// LibTorch's own reader would wait for a FIFO's writer.
absl::Status CheckReadable(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return SystemError(path);
  struct stat info{};
  const bool known = ::fstat(fd, &info) == 0;
  const absl::Status status = known ? absl::OkStatus() : SystemError(path);
  ::close(fd);
  DFL_RETURN_IF_ERROR(status);
  if (S_ISREG(info.st_mode)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": is not a regular file; allowed: a TorchScript file"));
}

bool ChangesNothing(absl::string_view record) {
  return record == "version" || record == "byteorder" ||
         absl::StartsWith(record, ".") || absl::StartsWith(record, "extra/") ||
         absl::EndsWith(record, ".debug_pkl");
}

}  // namespace

absl::StatusOr<std::string> HashArchive(const std::string& path) {
  DFL_RETURN_IF_ERROR(CheckReadable(path));
  std::string digest;
  const absl::Status status = Guarded(path, [&] {
    caffe2::serialize::PyTorchStreamReader reader(path);
    std::vector<std::string> records = reader.getAllRecords();
    std::sort(records.begin(), records.end());
    Sha256 hash;
    for (const std::string& record : records) {
      if (ChangesNothing(record)) continue;
      const auto [bytes, size] = reader.getRecord(record);
      hash.Update(absl::StrCat(record.size(), " ", record, " ", size, "\n"));
      hash.Update(
          absl::string_view(static_cast<const char*>(bytes.get()), size));
    }
    digest = hash.HexDigest();
    return absl::OkStatus();
  });
  if (absl::IsInternal(status)) return NotTorchScript(status);
  DFL_RETURN_IF_ERROR(status);
  return digest;
}

}  // namespace dfl::learner
