// A daemon's file into one of the caller's and back, with a line of progress on
// a terminal.
#ifndef DFL_CLI_FILES_TRANSFER_H_
#define DFL_CLI_FILES_TRANSFER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/console.h"
#include "cli/context.h"

namespace dfl::cli {

// A line on a terminal's stderr that is drawn over and over, then wiped.
class ProgressLine {
 public:
  explicit ProgressLine(Context& context) : context_(context) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Draw(int64_t done, int64_t total);

 private:
  Context& context_;
  int drawn_ = -1;
};

// -, or another name of it such as /dev/stdout, though it be a plain file: what
// there is to say goes elsewhere.
bool IsStdout(const std::string& path);

// Where a file goes: OutputFile's ways (daemon/base/atomic_file.h), and stdout.
class FileOut {
 public:
  // `what` it is: "a model".
  // Errors: as OutputFile::Open; INVALID_ARGUMENT when stdout is a terminal.
  static absl::StatusOr<std::unique_ptr<FileOut>> Open(Context& context,
                                                       const std::string& path,
                                                       const std::string& what);

  // The next part of `total` bytes. Errors: as OutputFile.
  absl::Status Append(absl::string_view data, int64_t total);
  absl::Status Commit();
  // Whether it appears only when it is complete.
  bool atomic() const { return file_ != nullptr && file_->atomic(); }

 private:
  FileOut(Context& context, std::unique_ptr<OutputFile> file)
      : context_(context), file_(std::move(file)) {
    progress_.emplace(context);
  }

  Context& context_;
  const std::unique_ptr<OutputFile> file_;  // null: stdout
  std::optional<ProgressLine> progress_;
  int64_t done_ = 0;
};

// A file that is read in parts.
class InputFile {
 public:
  // `wanted` it should be: "a safetensors file".
  // Errors: NOT_FOUND; INVALID_ARGUMENT: no plain file, or empty; INTERNAL.
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(
      const std::string& path, const std::string& wanted);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int64_t size() const { return size_; }
  absl::StatusOr<std::string> Read(int64_t offset, int64_t max_bytes) const;

 private:
  InputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
  int64_t size_ = 0;
};

}  // namespace dfl::cli

#endif  // DFL_CLI_FILES_TRANSFER_H_
