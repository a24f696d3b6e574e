#include "daemon/app/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace dfl::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kRefusalsPeriod = absl::Minutes(1);

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

// What callers send may be no UTF-8.
std::string Line(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

AuditLog::AuditLog(std::string path,
                   std::function<void(const absl::Status&)> on_failure)
    : path_(std::move(path)), on_failure_(std::move(on_failure)) {}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(
    std::string path, std::function<void(const absl::Status&)> on_failure) {
  std::unique_ptr<AuditLog> log(
      new AuditLog(std::move(path), std::move(on_failure)));
  absl::MutexLock lock(&log->mutex_);
  DFL_RETURN_IF_ERROR(log->OpenFile());
  return log;
}

AuditLog::~AuditLog() {
  absl::MutexLock lock(&mutex_);
  if (fd_ >= 0) close(fd_);
}

void AuditLog::Write(const control::AuditRecord& record, absl::Time now) {
  const std::string line =
      Line({{"time", TimeText(now)},
            {"who", record.caller.name},
            {"role", control::Name(record.caller.role)},
            {"local", record.caller.local},
            {"what", record.what},
            {"result", record.status.ok() ? "ok" : record.status.ToString()}});
  absl::MutexLock lock(&mutex_);
  Append(line);
}

void AuditLog::WriteRefusals(const std::map<std::string, int64_t>& totals,
                             absl::Time now, absl::Time steady) {
  absl::MutexLock lock(&mutex_);
  if (totals == told_ || steady - told_at_ < kRefusalsPeriod) return;
  Json more = Json::object();
  for (const auto& [reason, total] : totals) {
    const int64_t since = total - told_[reason];
    if (since > 0) more[reason] = since;
  }
  told_ = totals;
  told_at_ = steady;
  Append(Line({{"time", TimeText(now)},
               {"who", "strangers"},
               {"role", control::Name(control::Role::kNone)},
               {"local", false},
               {"what", "connect"},
               {"result", "refused"},
               {"refused", std::move(more)}}));
}

void AuditLog::Append(absl::string_view line) {
  if (!IsInPlace()) {
    const absl::Status opened = OpenFile();
    if (!opened.ok()) return on_failure_(opened);
  }
  const std::string text = absl::StrCat(broken_ ? "\n" : "", line);
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = write(fd_, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      const absl::Status failed = FileError(path_, "write a line to it");
      broken_ = broken_ || done > 0;
      return on_failure_(failed);
    }
    done += static_cast<size_t>(wrote);
  }
  broken_ = false;
}

absl::Status AuditLog::OpenFile() {
  if (fd_ >= 0) close(fd_);
  fd_ = open(path_.c_str(),
             O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
  if (fd_ < 0) return FileError(path_, "open it for the audit log");
  return absl::OkStatus();
}

bool AuditLog::IsInPlace() const {
  struct stat ours{};
  struct stat there{};
  return fd_ >= 0 && fstat(fd_, &ours) == 0 &&
         stat(path_.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
         ours.st_ino == there.st_ino;
}

}  // namespace dfl::app
