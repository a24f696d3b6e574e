// Files out of a daemon and into it, part by part: a model's, a checkpoint's.
// Not installed.
#ifndef DFL_CLIENT_FILE_PARTS_H_
#define DFL_CLIENT_FILE_PARTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/calls.h"

namespace dfl {
namespace client {

using WritePart =
    std::function<absl::Status(absl::string_view data, int64_t total_bytes)>;
using ReadPart = std::function<absl::StatusOr<std::string>(int64_t offset,
                                                           int64_t max_bytes)>;

// Frees what the daemon keeps for a transfer, whatever became of it.
class TransferEnd {
 public:
  // `calls` outlives it.
  TransferEnd(Calls& calls, std::string token)
      : calls_(calls), token_(std::move(token)) {}
  ~TransferEnd();
  TransferEnd(const TransferEnd&) = delete;
  TransferEnd& operator=(const TransferEnd&) = delete;

 private:
  Calls& calls_;
  const std::string token_;
};

// Passes the file that `token` has opened to `write`, in order.
// Errors: of the calls, and of `write`, which ends it; DATA_LOSS when the
// daemon gives other bytes than it announced.
absl::Status ReadFile(Calls& calls, const std::string& token,
                      int64_t total_bytes, const WritePart& write);

// Sends what `read` gives to where `token` has opened a file.
// Errors: of the calls, and of `read`; DATA_LOSS when it gives nothing.
absl::Status WriteFile(Calls& calls, const std::string& token,
                       int64_t total_bytes, const ReadPart& read);

}  // namespace client
}  // namespace dfl

#endif  // DFL_CLIENT_FILE_PARTS_H_
