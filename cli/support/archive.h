// A tar archive (ustar, POSIX.1-1988), compressed by gzip, as `tar xzf` reads
// it.
#ifndef DFL_CLI_SUPPORT_ARCHIVE_H_
#define DFL_CLI_SUPPORT_ARCHIVE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace dfl::cli {

struct ArchiveEntry {
  std::string name;  // a path of at most 100 bytes
  std::string content;
};

// Every file has mode 0600 and this time.
// Errors: INVALID_ARGUMENT: a name is too long.
absl::StatusOr<std::string> MakeArchive(const std::vector<ArchiveEntry>& files,
                                        absl::Time at);

}  // namespace dfl::cli

#endif  // DFL_CLI_SUPPORT_ARCHIVE_H_
