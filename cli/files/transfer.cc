#include "cli/files/transfer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace dfl::cli {
namespace {

constexpr char kStdout[] = "-";

absl::Status InputError(const std::string& path, int error) {
  const std::string text = absl::StrCat(path, ": ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(text)
                         : absl::InternalError(text);
}

}  // namespace

ProgressLine::~ProgressLine() {
  if (drawn_ >= 0) context_.io().err << "\r\x1b[K" << std::flush;
}

void ProgressLine::Draw(int64_t done, int64_t total) {
  if (!context_.io().err_is_terminal || total <= 0) return;
  const int percent = static_cast<int>(done * 100 / total);
  if (percent == drawn_) return;
  drawn_ = percent;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  context_.io().err << "\r\x1b[K" << ProgressBar(share, 40) << "  "
                    << HumanBytes(done) << " of " << HumanBytes(total)
                    << std::flush;
}

bool IsStdout(const std::string& path) {
  if (path == kStdout) return true;
  struct stat there{};
  struct stat out{};
  return stat(path.c_str(), &there) == 0 && fstat(STDOUT_FILENO, &out) == 0 &&
         there.st_dev == out.st_dev && there.st_ino == out.st_ino &&
         (NamesDescriptor(path) ||
          (!S_ISREG(out.st_mode) && !S_ISCHR(out.st_mode)));
}

// ---------------------------------------------------------------------- out --

absl::StatusOr<std::unique_ptr<FileOut>> FileOut::Open(
    Context& context, const std::string& path, const std::string& what) {
  std::unique_ptr<OutputFile> file;
  if (!IsStdout(path)) {
    DFL_ASSIGN_OR_RETURN(file, OutputFile::Open(path));
  } else if (context.io().out_is_terminal) {
    return absl::InvalidArgumentError(
        absl::StrCat("-: stdout is a terminal, and ", what,
                     " is no text; send it to a file or a pipe"));
  }
  return std::unique_ptr<FileOut>(new FileOut(context, std::move(file)));
}

absl::Status FileOut::Append(absl::string_view data, int64_t total) {
  done_ += static_cast<int64_t>(data.size());
  progress_->Draw(done_, total);
  if (file_ != nullptr) return file_->Append(data);
  std::ostream& out = context_.io().out;
  out.write(data.data(), static_cast<std::streamsize>(data.size()));
  out.flush();
  return out.good() ? absl::OkStatus()
                    : absl::UnavailableError("-: stdout takes no more");
}

absl::Status FileOut::Commit() {
  progress_.emplace(context_);  // the one that was drawn is wiped
  return file_ == nullptr ? absl::OkStatus() : file_->Commit();
}

// ----------------------------------------------------------------------- in --

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::Open(
    const std::string& path, const std::string& wanted) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return InputError(path, errno);
  std::unique_ptr<InputFile> file(new InputFile(path, fd));
  struct stat info{};
  if (fstat(fd, &info) != 0) return InputError(path, errno);
  if (!S_ISREG(info.st_mode) || info.st_size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is empty or no plain file; give ", wanted));
  }
  file->size_ = info.st_size;
  return file;
}

InputFile::~InputFile() { close(fd_); }

absl::StatusOr<std::string> InputFile::Read(int64_t offset,
                                            int64_t max_bytes) const {
  std::string data(static_cast<size_t>(max_bytes), '\0');
  ssize_t got = 0;
  do {
    got = pread(fd_, data.data(), data.size(), offset);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return InputError(path_, errno);
  data.resize(static_cast<size_t>(got));
  return data;
}

}  // namespace dfl::cli
