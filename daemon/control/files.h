// Files that go out of the daemon and come into it, part by part: what
// token_files.h keeps, whatever is in them. Also what Backend says in every
// call.
#ifndef DFL_CONTROL_FILES_H_
#define DFL_CONTROL_FILES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl::control {

template <typename T>
using Done = std::function<void(absl::StatusOr<T>)>;

// Asked once, right before an order is carried out. False: its caller gave up
// or was told that time is over, so the order must not happen any more. Empty:
// always true.
using Begin = std::function<bool()>;

// A file being read. One call at a time, from any thread.
class FileSource {
 public:
  virtual ~FileSource() = default;
  virtual int64_t total_bytes() const = 0;
  // min(max_bytes, total_bytes() - offset) bytes from `offset`, which is in
  // [0, total_bytes()]; max_bytes <= 1 MiB.
  virtual absl::StatusOr<std::string> Read(int64_t offset,
                                           int64_t max_bytes) = 0;
};

// A file being written. One call at a time, from any thread.
class FileSink {
 public:
  virtual ~FileSink() = default;
  // Appends `data`. The service has checked order and announced length.
  virtual absl::Status Append(absl::string_view data) = 0;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_FILES_H_
