#include "daemon/control/token_files.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"

namespace dfl::control {
namespace {

// 128 bits that nobody guesses.
std::string MintToken() {
  std::string bytes(16, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got =
        getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got > 0) {
      filled += static_cast<size_t>(got);
    } else {
      DFL_CHECK(got < 0 && errno == EINTR);
    }
  }
  return absl::BytesToHexString(bytes);
}

// Null: the file goes out.
struct SinkIn {
  FileSink* operator()(const std::monostate& /*none*/) const { return nullptr; }
  template <typename T>
  FileSink* operator()(const std::unique_ptr<T>& sink) const {
    return sink.get();
  }
};
template <typename Sink>
FileSink* SinkOf(const Sink& sink) {
  return std::visit(SinkIn(), sink);
}

}  // namespace

TokenFiles::TokenFiles(Timers& timers, absl::Duration idle_time,
                       int max_transfers)
    : timers_(timers),
      idle_time_(idle_time),
      max_transfers_(max_transfers),
      table_(std::make_shared<Table>()) {}

TokenFiles::~TokenFiles() { Clear(); }

absl::Status TokenFiles::CheckRoom() const {
  absl::MutexLock lock(&table_->mutex);
  if (static_cast<int>(table_->entries.size()) < max_transfers_) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(table_->entries.size(),
                   " files are under way, in or out, and no more are allowed "
                   "at once; wait for one to end"));
}

absl::StatusOr<std::string> TokenFiles::AddExport(
    std::unique_ptr<FileSource> source) {
  auto transfer = std::make_shared<Transfer>();
  {
    absl::MutexLock lock(&transfer->mutex);
    transfer->total_bytes = source->total_bytes();
    transfer->source = std::move(source);
  }
  return Add(std::move(transfer));
}

absl::StatusOr<std::string> TokenFiles::AddImport(
    std::unique_ptr<ModelSink> sink, int64_t total_bytes) {
  return AddSink(std::move(sink), total_bytes);
}

absl::StatusOr<std::string> TokenFiles::AddRestore(
    std::unique_ptr<CheckpointSink> sink, int64_t total_bytes) {
  return AddSink(std::move(sink), total_bytes);
}

absl::StatusOr<std::string> TokenFiles::AddSink(Sink sink,
                                                int64_t total_bytes) {
  auto transfer = std::make_shared<Transfer>();
  {
    absl::MutexLock lock(&transfer->mutex);
    transfer->total_bytes = total_bytes;
    transfer->sink = std::move(sink);
  }
  return Add(std::move(transfer));
}

absl::StatusOr<std::string> TokenFiles::Add(
    std::shared_ptr<Transfer> transfer) {
  DFL_RETURN_IF_ERROR(CheckRoom());
  std::string token = MintToken();
  {
    absl::MutexLock lock(&table_->mutex);
    table_->entries[token] = {std::move(transfer),
                              std::chrono::steady_clock::now()};
  }
  timers_.After(idle_time_, [&timers = timers_, idle = idle_time_,
                             table = std::weak_ptr<Table>(table_)] {
    Sweep(timers, idle, table);
  });
  return token;
}

void TokenFiles::Sweep(Timers& timers, absl::Duration idle_time,
                       std::weak_ptr<Table> weak) {
  const std::shared_ptr<Table> table = weak.lock();
  if (table == nullptr) return;
  std::vector<std::shared_ptr<Transfer>> dropped;
  bool left = false;
  {
    const auto now = std::chrono::steady_clock::now();
    absl::MutexLock lock(&table->mutex);
    for (auto it = table->entries.begin(); it != table->entries.end();) {
      if (absl::FromChrono(now - it->second.last_use) >= idle_time) {
        dropped.push_back(std::move(it->second.transfer));
        it = table->entries.erase(it);
      } else {
        ++it;
      }
    }
    left = !table->entries.empty();
  }
  if (!left) return;
  // Others were used meanwhile: look again, a while later.
  timers.After(idle_time / 2,
               [&timers, idle_time, weak] { Sweep(timers, idle_time, weak); });
}

absl::StatusOr<std::shared_ptr<TokenFiles::Transfer>> TokenFiles::Find(
    const std::string& token) {
  absl::MutexLock lock(&table_->mutex);
  const auto found = table_->entries.find(token);
  if (found == table_->entries.end()) {
    return absl::NotFoundError(
        absl::StrCat("no such transfer: it ended, or was not used for ",
                     absl::FormatDuration(idle_time_), "; begin again"));
  }
  found->second.last_use = std::chrono::steady_clock::now();
  return found->second.transfer;
}

absl::StatusOr<std::string> TokenFiles::Read(const std::string& token,
                                             int64_t offset,
                                             int64_t max_bytes) {
  DFL_ASSIGN_OR_RETURN(const std::shared_ptr<Transfer> transfer, Find(token));
  absl::MutexLock lock(&transfer->mutex);
  if (transfer->source == nullptr) {
    return absl::NotFoundError(
        "the token is of a file that comes in, not of one that goes out");
  }
  if (offset < 0 || offset > transfer->total_bytes) {
    return absl::OutOfRangeError(
        absl::StrCat("offset ", offset, " is outside the file; allowed: 0 to ",
                     transfer->total_bytes));
  }
  const int64_t most = max_bytes == 0 ? kMaxPartBytes : max_bytes;
  return transfer->source->Read(offset,
                                std::clamp<int64_t>(most, 1, kMaxPartBytes));
}

absl::StatusOr<int64_t> TokenFiles::Write(const std::string& token,
                                          int64_t offset,
                                          absl::string_view data) {
  const int64_t size = static_cast<int64_t>(data.size());
  if (size > kMaxPartBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a part of ", size, " bytes is too long; allowed: up to ",
                     kMaxPartBytes));
  }
  DFL_ASSIGN_OR_RETURN(const std::shared_ptr<Transfer> transfer, Find(token));
  absl::MutexLock lock(&transfer->mutex);
  FileSink* const sink = SinkOf(transfer->sink);
  if (sink == nullptr) {
    return absl::NotFoundError(
        "the token is of a file that goes out, not of one that comes in");
  }
  if (size > 0 && offset == transfer->last_offset &&
      offset + size == transfer->received) {
    return transfer->received;  // a repeat
  }
  if (offset != transfer->received) {
    return absl::OutOfRangeError(absl::StrCat("a part at offset ", offset,
                                              " does not follow; the next "
                                              "one begins at ",
                                              transfer->received));
  }
  if (size > transfer->total_bytes - offset) {
    return absl::OutOfRangeError(
        absl::StrCat("the part ends at ", offset + size, ", but ",
                     transfer->total_bytes, " bytes were announced"));
  }
  DFL_RETURN_IF_ERROR(sink->Append(data));
  transfer->last_offset = offset;
  transfer->received += size;
  return transfer->received;
}

template <typename T>
absl::StatusOr<std::shared_ptr<T>> TokenFiles::Take(const std::string& token) {
  DFL_ASSIGN_OR_RETURN(const std::shared_ptr<Transfer> transfer, Find(token));
  std::shared_ptr<T> sink;
  {
    absl::MutexLock lock(&transfer->mutex);
    auto* const held = std::get_if<std::unique_ptr<T>>(&transfer->sink);
    if (held == nullptr) {
      return absl::NotFoundError("the token is of another kind of transfer");
    }
    if (transfer->received != transfer->total_bytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("the file is not complete: ", transfer->received, " of ",
                       transfer->total_bytes, " bytes came; send the rest"));
    }
    sink = std::move(*held);
    transfer->sink = std::monostate();
  }
  End(token);
  return sink;
}

template absl::StatusOr<std::shared_ptr<ModelSink>> TokenFiles::Take(
    const std::string& token);
template absl::StatusOr<std::shared_ptr<CheckpointSink>> TokenFiles::Take(
    const std::string& token);

void TokenFiles::End(const std::string& token) {
  std::shared_ptr<Transfer> dropped;
  absl::MutexLock lock(&table_->mutex);
  const auto found = table_->entries.find(token);
  if (found == table_->entries.end()) return;
  dropped = std::move(found->second.transfer);
  table_->entries.erase(found);
}

void TokenFiles::Clear() {
  std::map<std::string, Entry> dropped;
  absl::MutexLock lock(&table_->mutex);
  dropped.swap(table_->entries);
}

}  // namespace dfl::control
