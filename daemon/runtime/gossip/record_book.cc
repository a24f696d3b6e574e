#include "daemon/runtime/gossip/record_book.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"

namespace dfl::runtime {
namespace {

using Held = RecordBook::Held;

bool KeyBefore(const ports::RecordId& a, const ports::RecordId& b) {
  return std::tie(a.kind, a.subject) < std::tie(b.kind, b.subject);
}

// Of one kind and subject.
bool Newer(const ports::RecordId& a, const ports::RecordId& b) {
  return std::tie(a.counter, a.hash) > std::tie(b.counter, b.hash);
}

// `held` is trusted and was signed after `other`, which is not.
bool Cures(const Held& held, const Held& other) {
  return held.trusted && !other.trusted &&
         held.record->unix_nanos > other.record->unix_nanos;
}

bool Overrides(const Held& held, const Held& other) {
  if (Cures(held, other)) return true;
  return Newer(held.record->id, other.record->id) && !Cures(other, held);
}

// The places of a kind and subject.
std::pair<size_t, size_t> RangeOf(const std::vector<Held>& held,
                                  const ports::RecordId& id) {
  const auto first = std::partition_point(
      held.begin(), held.end(),
      [&](const Held& h) { return KeyBefore(h.record->id, id); });
  const auto last = std::partition_point(first, held.end(), [&](const Held& h) {
    return !KeyBefore(id, h.record->id);
  });
  return {first - held.begin(), last - held.begin()};
}

// Names that records have taken.
class Names {
 public:
  void Add(const Record& record) {
    if (record.scope.empty()) all_ = true;
    names_.insert(record.scope.begin(), record.scope.end());
  }
  bool Cover(const Record& record) const {
    if (all_) return true;
    if (record.scope.empty()) return false;
    return std::all_of(
        record.scope.begin(), record.scope.end(),
        [this](absl::string_view name) { return names_.count(name) != 0; });
  }

 private:
  bool all_ = false;
  std::set<absl::string_view> names_;
};

void AddPast(const Record& record, std::vector<PastRecord>& history) {
  const auto same = [&](const PastRecord& past) {
    return past.id == record.id;
  };
  if (std::any_of(history.begin(), history.end(), same)) return;
  const auto of_kind = [&](const PastRecord& past) {
    return past.id.kind == record.id.kind;
  };
  if (std::count_if(history.begin(), history.end(), of_kind) >=
      static_cast<int64_t>(RecordBook::kMaxHistory)) {
    history.erase(std::find_if(history.begin(), history.end(), of_kind));
  }
  history.push_back({record.id, record.author, record.unix_nanos, record.text});
}

}  // namespace

absl::StatusOr<std::string> RecordBook::Load() {
  if (files_ == nullptr) return std::string();
  const absl::StatusOr<std::string> bytes = files_->Read(kFile);
  if (absl::IsNotFound(bytes.status())) return std::string();
  if (!bytes.ok()) return bytes.status();
  BookContent content = DecodeBook(*bytes);
  std::string note;
  if (content.damaged) {
    note = absl::StrCat(kFile, " is damaged; ");
  }
  size_t refused = 0;
  std::vector<Held> current;
  for (const std::string& record_bytes : content.current) {
    absl::StatusOr<Record> record = judge_.Reopen(record_bytes);
    if (!record.ok()) {
      absl::StrAppend(
          &note, "a record is left out: ", record.status().message(), "; ");
      ++refused;
      continue;
    }
    const bool trusted = judge_.CheckAuthor(*record).ok();
    current.push_back(
        {std::make_shared<const Record>(*std::move(record)), trusted});
  }
  std::stable_sort(current.begin(), current.end(),
                   [](const Held& a, const Held& b) {
                     return KeyBefore(a.record->id, b.record->id);
                   });
  current_ = std::move(current);
  history_ = std::move(content.history);
  if (!note.empty()) {
    absl::StrAppend(&note, current_.size(), " records are left, ", refused,
                    " are lost; neighbours have them");
  }
  return note;
}

RecordBook::Answer RecordBook::Insert(Held held, std::vector<Held>& current,
                                      std::vector<PastRecord>& history) const {
  const std::shared_ptr<const Record> record = held.record;
  auto [at, end] = RangeOf(current, record->id);
  Names taken;
  bool tie = false;
  while (at < end && !Overrides(held, current[at])) {
    taken.Add(*current[at].record);
    tie = tie || current[at].record->id.counter == record->id.counter;
    ++at;
  }
  if (taken.Cover(*record)) {
    if (tie) AddPast(*record, history);
    return Answer::kOlder;
  }
  current.insert(current.begin() + static_cast<int64_t>(at), std::move(held));
  ++end;
  taken.Add(*record);
  for (size_t i = at + 1; i < end;) {
    if (!taken.Cover(*current[i].record)) {
      taken.Add(*current[i++].record);
      continue;
    }
    AddPast(*current[i].record, history);
    current.erase(current.begin() + static_cast<int64_t>(i));
    --end;
  }
  return Answer::kTaken;
}

absl::StatusOr<RecordBook::Answer> RecordBook::Offer(Record record, Disk disk) {
  return Add({std::make_shared<const Record>(std::move(record)), true}, disk);
}

absl::StatusOr<RecordBook::Answer> RecordBook::Restore(Record record) {
  const bool trusted = judge_.CheckAuthor(record).ok();
  // What was replaced is not brought back.
  if (IsPast(record.id)) return Answer::kOlder;
  return Add({std::make_shared<const Record>(std::move(record)), trusted},
             Disk::kMay);
}

absl::StatusOr<RecordBook::Answer> RecordBook::Add(Held held, Disk disk) {
  if (Find(held.record->id) != nullptr) return Answer::kUnchanged;
  std::vector<Held> current = current_;
  std::vector<PastRecord> history = history_;
  const Answer answer = Insert(std::move(held), current, history);
  if (answer == Answer::kOlder && history.size() == history_.size() &&
      (history.empty() || history.back().id == history_.back().id)) {
    return answer;
  }
  DFL_RETURN_IF_ERROR(CheckRoom(current));
  const absl::Status saved = Save(current, history);
  if (!saved.ok() && disk == Disk::kMust) return saved;
  not_on_disk_ = saved;
  current_ = std::move(current);
  history_ = std::move(history);
  return answer;
}

absl::Status RecordBook::CheckRoom(const std::vector<Held>& current) {
  int64_t total = 0;
  for (const Held& held : current) {
    total += static_cast<int64_t>(held.record->bytes.size());
  }
  if (current.size() <= kMaxCurrent && total <= kMaxBytes) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the book would hold ", current.size(), " records of ", total,
      " bytes; at most ", kMaxCurrent, " of ", kMaxBytes,
      " bytes are kept; an order to all nodes replaces those to some"));
}

absl::Status RecordBook::Save(const std::vector<Held>& current,
                              const std::vector<PastRecord>& history) {
  if (files_ == nullptr) return absl::OkStatus();
  std::vector<absl::string_view> bytes;
  bytes.reserve(current.size());
  for (const Held& held : current) bytes.push_back(held.record->bytes);
  return files_->WriteAtomically(kFile, EncodeBook(bytes, history));
}

bool RecordBook::Wants(const ports::RecordId& id) const {
  const auto [begin, end] = RangeOf(current_, id);
  for (size_t i = begin; i < end; ++i) {
    const Held& held = current_[i];
    if (held.record->id.hash == id.hash) return false;
    if (held.trusted && held.record->scope.empty() &&
        Newer(held.record->id, id)) {
      return false;
    }
  }
  return !IsPast(id);
}

bool RecordBook::IsPast(const ports::RecordId& id) const {
  return std::any_of(history_.begin(), history_.end(),
                     [&](const PastRecord& past) { return past.id == id; });
}

bool RecordBook::Recheck() {
  bool regained = false;
  for (Held& held : current_) {
    const bool trusted = judge_.CheckAuthor(*held.record).ok();
    regained = regained || (trusted && !held.trusted);
    held.trusted = trusted;
  }
  return regained;
}

const RecordBook::Held* RecordBook::Find(const ports::RecordId& id) const {
  const auto [begin, end] = RangeOf(current_, id);
  for (size_t i = begin; i < end; ++i) {
    if (current_[i].record->id == id) return &current_[i];
  }
  return nullptr;
}

}  // namespace dfl::runtime
