#include "daemon/runtime/keeper/state_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace dfl::runtime {
namespace {

constexpr const char* kSlots[] = {"node_state.0", "node_state.1"};

}  // namespace

absl::StatusOr<StateFiles::Loaded> StateFiles::Load() {
  Loaded loaded;
  int absent = 0;
  absl::Status read_error;
  std::string broken;  // what is wrong with which file
  for (int slot = 0; slot < 2; ++slot) {
    const absl::StatusOr<std::string> bytes = files_.Read(kSlots[slot]);
    if (absl::IsNotFound(bytes.status())) {
      ++absent;
      continue;
    }
    if (!bytes.ok()) read_error = bytes.status();
    absl::StatusOr<StateGeneration> generation =
        bytes.ok() ? codec_.Decode(*bytes)
                   : absl::StatusOr<StateGeneration>(bytes.status());
    if (!generation.ok()) {
      const absl::Status status = Annotate(generation.status(), kSlots[slot]);
      // Never fall back behind a newer dfld's state: it would be overwritten.
      if (bytes.ok() && absl::IsFailedPrecondition(status)) return status;
      absl::StrAppend(&broken, broken.empty() ? "" : "; ", status.message());
      continue;
    }
    if (generation->number <= generation_) continue;
    generation_ = generation->number;
    next_slot_ = 1 - slot;
    loaded.state = std::move(generation->state);
    loaded.found = true;
  }
  if (broken.empty()) return loaded;
  if (loaded.found) {
    loaded.note =
        absl::StrCat(broken, "; the other generation, ", generation_, " (",
                     kSlots[1 - next_slot_], "), is used instead");
    return loaded;
  }
  if (!read_error.ok()) {
    return absl::Status(read_error.code(), broken);
  }
  if (absent == 1) {
    loaded.note = absl::StrCat(
        broken, "; there is no generation before it, the node starts as new");
    return loaded;
  }
  return absl::DataLossError(absl::StrCat(
      broken,
      "; neither generation is whole. Remove both to start as new; the "
      "plan comes back with dflctl plan apply"));
}

absl::Status StateFiles::Save(const RunState& state) {
  DFL_ASSIGN_OR_RETURN(const std::string bytes,
                       codec_.Encode({generation_ + 1, state}));
  DFL_RETURN_IF_ERROR(files_.WriteAtomically(kSlots[next_slot_], bytes));
  ++generation_;
  next_slot_ = 1 - next_slot_;
  return absl::OkStatus();
}

}  // namespace dfl::runtime
