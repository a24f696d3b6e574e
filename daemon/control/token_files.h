// Pending exports, imports and restores, by token. A transfer that is not used
// for a while is dropped, and what it held is freed.
#ifndef DFL_CONTROL_TOKEN_FILES_H_
#define DFL_CONTROL_TOKEN_FILES_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/control/backend.h"
#include "daemon/control/timers.h"

namespace dfl::control {

// Largest part of a file in one call.
inline constexpr int64_t kMaxPartBytes = int64_t{1} << 20;

// Thread-safe. `timers` must outlive it.
class TokenFiles {
 public:
  TokenFiles(Timers& timers, absl::Duration idle_time, int max_transfers);
  // As Clear.
  ~TokenFiles();

  // RESOURCE_EXHAUSTED when no further transfer may begin. Ask before making
  // the copy; the Add that follows can still fail.
  absl::Status CheckRoom() const;

  // The token. Errors: RESOURCE_EXHAUSTED.
  absl::StatusOr<std::string> AddExport(std::unique_ptr<FileSource> source);
  absl::StatusOr<std::string> AddImport(std::unique_ptr<ModelSink> sink,
                                        int64_t total_bytes);
  absl::StatusOr<std::string> AddRestore(std::unique_ptr<CheckpointSink> sink,
                                         int64_t total_bytes);

  // Errors: NOT_FOUND for an unknown or forgotten token; OUT_OF_RANGE for an
  // offset outside the file.
  absl::StatusOr<std::string> Read(const std::string& token, int64_t offset,
                                   int64_t max_bytes);

  // Returns the bytes received so far. The last part may be sent again.
  // Errors: NOT_FOUND; OUT_OF_RANGE for a gap or beyond the announced length;
  // INVALID_ARGUMENT for an overlong part.
  absl::StatusOr<int64_t> Write(const std::string& token, int64_t offset,
                                absl::string_view data);

  // Removes a complete import and returns its sink.
  // Errors: NOT_FOUND; FAILED_PRECONDITION when bytes are missing.
  absl::StatusOr<std::shared_ptr<ModelSink>> TakeImport(
      const std::string& token) {
    return Take<ModelSink>(token);
  }
  // The same of a restore.
  absl::StatusOr<std::shared_ptr<CheckpointSink>> TakeRestore(
      const std::string& token) {
    return Take<CheckpointSink>(token);
  }

  // Does nothing for an unknown token.
  void End(const std::string& token);

  void Clear();

 private:
  // Where the parts of a file go: none where the file goes out.
  using Sink = std::variant<std::monostate, std::unique_ptr<ModelSink>,
                            std::unique_ptr<CheckpointSink>>;
  struct Transfer {
    absl::Mutex mutex;  // one call at a time
    std::unique_ptr<FileSource> source ABSL_GUARDED_BY(mutex);
    Sink sink ABSL_GUARDED_BY(mutex);
    int64_t total_bytes ABSL_GUARDED_BY(mutex) = 0;
    int64_t received ABSL_GUARDED_BY(mutex) = 0;
    int64_t last_offset ABSL_GUARDED_BY(mutex) = 0;
  };
  struct Entry {
    std::shared_ptr<Transfer> transfer;
    std::chrono::steady_clock::time_point last_use;
  };
  struct Table {
    absl::Mutex mutex;
    std::map<std::string, Entry> entries ABSL_GUARDED_BY(mutex);
  };

  absl::StatusOr<std::string> Add(std::shared_ptr<Transfer> transfer);
  absl::StatusOr<std::string> AddSink(Sink sink, int64_t total_bytes);
  absl::StatusOr<std::shared_ptr<Transfer>> Find(const std::string& token);
  // As TakeImport.
  template <typename T>
  absl::StatusOr<std::shared_ptr<T>> Take(const std::string& token);
  static void Sweep(Timers& timers, absl::Duration idle_time,
                    std::weak_ptr<Table> weak);

  Timers& timers_;
  const absl::Duration idle_time_;
  const int max_transfers_;
  std::shared_ptr<Table> table_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_TOKEN_FILES_H_
