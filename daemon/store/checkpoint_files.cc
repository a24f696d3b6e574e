#include "daemon/store/checkpoint_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace dfl::store {
namespace {

using runtime::Checkpoint;
using runtime::CheckpointHead;

// What is coming in, and is no checkpoint of the node's yet.
constexpr char kIncoming[] = "checkpoint.incoming";
// So far above all others is one that is restored: what is written while it
// comes in is older.
constexpr uint64_t kGenerationsAbove = uint64_t{1} << 20;

std::string NameOf(size_t slot) { return absl::StrCat("checkpoint.", slot); }

std::string AsideName(size_t slot) {
  return absl::StrCat(NameOf(slot), ".aside");
}

// It will never be read, rather than not now.
bool IsUnusable(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsFailedPrecondition(status) ||
         absl::IsInvalidArgument(status);
}

size_t Bounded(int64_t keep) {
  return static_cast<size_t>(std::clamp(keep, core::CheckpointSpec::kLeastKept,
                                        core::CheckpointSpec::kMostKept));
}

}  // namespace

CheckpointFiles::CheckpointFiles(ports::Files& files) : files_(files) {
  (void)files_.Remove(kIncoming);
}

// ------------------------------------------------------------ what is there --

void CheckpointFiles::SetAside(size_t slot, const absl::Status& why,
                               std::vector<std::string>& notes) {
  const std::string name = NameOf(slot);
  heads_[slot].reset();
  const absl::Status moved = files_.Rename(name, AsideName(slot));
  aside_[slot] = std::string(why.message());
  notes.push_back(absl::StrCat(
      name, " cannot be used: ", why.message(),
      moved.ok() ? absl::StrCat("; it is kept as ", AsideName(slot)) : ""));
}

void CheckpointFiles::Look(std::vector<std::string>& notes) {
  if (looked_) return;
  looked_ = true;
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (heads_[slot]) continue;
    const std::string name = NameOf(slot);
    absl::StatusOr<ReadHead> read = ReadCheckpointHead(files_, name);
    unread_[slot].clear();
    if (read.ok()) {
      heads_[slot] = *std::move(read);
    } else if (IsUnusable(read.status())) {
      SetAside(slot, read.status(), notes);
    } else if (!absl::IsNotFound(read.status())) {
      unread_[slot] = absl::StrCat("cannot be read: ", read.status().message());
      // A disk that fails does so for all of them.
      if (looked_) notes.push_back(absl::StrCat(name, " ", unread_[slot]));
      looked_ = false;
    }
  }
}

std::vector<size_t> CheckpointFiles::Newest() const {
  std::vector<size_t> slots;
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (heads_[slot]) slots.push_back(slot);
  }
  std::sort(slots.begin(), slots.end(), [this](size_t a, size_t b) {
    mutex_.AssertHeld();
    return heads_[a]->generation > heads_[b]->generation;
  });
  return slots;
}

uint64_t CheckpointFiles::NextGeneration() const {
  const std::vector<size_t> slots = Newest();
  return slots.empty() ? 1 : heads_[slots[0]]->generation + 1;
}

std::vector<CheckpointHead> CheckpointFiles::List(
    std::vector<std::string>& notes) {
  const absl::MutexLock lock(&mutex_);
  Look(notes);
  std::vector<CheckpointHead> heads;
  for (const size_t slot : Newest()) heads.push_back(heads_[slot]->head);
  return heads;
}

KeptCheckpoints CheckpointFiles::Kept() {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::string> notes;  // told by List
  Look(notes);
  KeptCheckpoints kept;
  for (const size_t slot : Newest()) {
    kept.whole.push_back({NameOf(slot), *heads_[slot]});
  }
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (!unread_[slot].empty()) {
      kept.aside.push_back({NameOf(slot), 0, unread_[slot]});
    }
    const auto reader = files_.Open(AsideName(slot));
    if (!reader.ok()) continue;
    AsideCheckpoint aside{AsideName(slot), (*reader)->size(), aside_[slot]};
    if (aside.reason.empty()) {  // of an earlier start
      aside.reason = std::string(
          ReadCheckpointHead(files_, aside.file).status().message());
    }
    kept.aside.push_back(std::move(aside));
  }
  return kept;
}

absl::StatusOr<Checkpoint> CheckpointFiles::Read(const std::string& run_id,
                                                 int64_t step) {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::string> notes;
  Look(notes);
  for (const size_t slot : Newest()) {
    const CheckpointHead& head = heads_[slot]->head;
    if (head.run_id != run_id || head.step != step) continue;
    absl::StatusOr<Checkpoint> read = ReadCheckpoint(files_, NameOf(slot));
    if (read.ok() || !IsUnusable(read.status())) return read;
    SetAside(slot, read.status(), notes);
    return absl::Status(read.status().code(), notes.back());
  }
  return absl::NotFoundError(
      absl::StrCat("there is no checkpoint of step ", step));
}

absl::StatusOr<OpenedCheckpoint> CheckpointFiles::OpenNewest() {
  std::vector<std::string> notes;
  for (;;) {
    OpenedCheckpoint opened;
    size_t slot = 0;
    {
      const absl::MutexLock lock(&mutex_);
      Look(notes);
      const std::vector<size_t> slots = Newest();
      if (slots.empty()) {
        return absl::NotFoundError(
            "this node has no checkpoint that is whole; have it write one: "
            "dflctl checkpoint save");
      }
      slot = slots[0];
      opened.kept = {NameOf(slot), *heads_[slot]};
      DFL_ASSIGN_OR_RETURN(opened.reader, files_.Open(opened.kept.file));
    }
    // Others may be written meanwhile, also in its place.
    const absl::Status whole = CheckWhole(*opened.reader);
    if (whole.ok()) return opened;
    if (!IsUnusable(whole)) return whole;
    const absl::MutexLock lock(&mutex_);
    if (heads_[slot] &&
        heads_[slot]->generation == opened.kept.read.generation) {
      SetAside(slot, whole, notes);
    }
  }
}

// ------------------------------------------------------------------ writing --

size_t CheckpointFiles::NextSlot(const CheckpointHead& head,
                                 size_t keep) const {
  const std::vector<size_t> newest = Newest();
  if (!newest.empty() && heads_[newest[0]]->head.run_id == head.run_id &&
      heads_[newest[0]]->head.step == head.step) {
    return newest[0];
  }
  for (size_t slot = 0; slot < keep; ++slot) {
    if (IsFree(slot)) return slot;
  }
  for (auto slot = newest.rbegin(); slot != newest.rend(); ++slot) {
    if (*slot < keep) return *slot;
  }
  return 0;  // nothing could be read
}

void CheckpointFiles::Prune(size_t keep) {
  std::vector<size_t> slots = Newest();
  while (slots.size() > keep) {
    if (files_.Remove(NameOf(slots.back())).ok()) heads_[slots.back()].reset();
    slots.pop_back();
  }
  for (const size_t from : slots) {
    if (from < keep) continue;
    for (size_t to = 0; to < keep; ++to) {
      if (!IsFree(to)) continue;
      if (files_.Rename(NameOf(from), NameOf(to)).ok()) {
        heads_[to] = std::exchange(heads_[from], std::nullopt);
      }
      break;
    }
  }
}

absl::Status CheckpointFiles::Write(const Checkpoint& checkpoint,
                                    int64_t keep) {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::string> notes;  // told by List
  Look(notes);
  const size_t slot = NextSlot(checkpoint.head, Bounded(keep));
  DFL_ASSIGN_OR_RETURN(heads_[slot],
                       WriteCheckpoint(files_, NameOf(slot), NextGeneration(),
                                       checkpoint, stop_));
  unread_[slot].clear();
  Prune(Bounded(keep));
  return absl::OkStatus();
}

// ---------------------------------------------------------------- restoring --

absl::StatusOr<std::unique_ptr<CheckpointUpload>> CheckpointFiles::Receive(
    int64_t total_bytes, CheckpointUpload::CheckHead check) {
  const absl::MutexLock lock(&mutex_);
  if (!receiving_.expired()) {
    return absl::ResourceExhaustedError(
        "another checkpoint is being restored on this node; wait for it to "
        "end");
  }
  std::vector<std::string> notes;  // told by List
  Look(notes);
  const auto hold = std::make_shared<bool>(true);
  receiving_ = hold;
  return CheckpointUpload::Begin(files_, kIncoming,
                                 NextGeneration() + kGenerationsAbove,
                                 total_bytes, std::move(check), hold);
}

absl::StatusOr<KeptCheckpoint> CheckpointFiles::Place() {
  const absl::MutexLock lock(&mutex_);
  DFL_ASSIGN_OR_RETURN(const ReadHead read,
                       ReadCheckpointHead(files_, kIncoming));
  size_t slot = 0;
  while (slot + 1 < kSlots && !IsFree(slot)) ++slot;
  DFL_RETURN_IF_ERROR(files_.Rename(kIncoming, NameOf(slot)));
  heads_[slot] = read;
  unread_[slot].clear();
  return KeptCheckpoint{NameOf(slot), read};
}

void CheckpointFiles::Settle(int64_t keep) {
  const absl::MutexLock lock(&mutex_);
  Prune(Bounded(keep));
}

void CheckpointFiles::Withdraw(uint64_t generation) {
  const absl::MutexLock lock(&mutex_);
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (!heads_[slot] || heads_[slot]->generation != generation) continue;
    if (files_.Remove(NameOf(slot)).ok()) heads_[slot].reset();
  }
}

}  // namespace dfl::store
