#include "daemon/store/node_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/check.h"
#include "daemon/base/checksum.h"
#include "daemon/base/status_macros.h"
#include "dfl/storage/v1/storage.pb.h"

namespace dfl::store {
namespace {

namespace v1 = ::dfl::storage::v1;

constexpr uint32_t kFormatVersion = 1;
constexpr const char* kSlots[] = {"node_state.0", "node_state.1"};

uint32_t ChecksumOf(uint32_t format_version, absl::string_view state) {
  char version[4];
  for (int i = 0; i < 4; ++i) {
    version[i] = static_cast<char>((format_version >> (8 * i)) & 0xff);
  }
  return ExtendCrc32c(Crc32c(absl::string_view(version, 4)), state);
}

v1::DesiredPhase ToProto(DesiredPhase phase) {
  switch (phase) {
    case DesiredPhase::kIdle:
      return v1::DESIRED_PHASE_IDLE;
    case DesiredPhase::kTraining:
      return v1::DESIRED_PHASE_TRAINING;
    case DesiredPhase::kPaused:
      return v1::DESIRED_PHASE_PAUSED;
    case DesiredPhase::kStopped:
      return v1::DESIRED_PHASE_STOPPED;
  }
  DFL_CHECK(false);
  return v1::DESIRED_PHASE_UNSPECIFIED;
}

DesiredPhase FromProto(v1::DesiredPhase phase) {
  switch (phase) {
    case v1::DESIRED_PHASE_TRAINING:
      return DesiredPhase::kTraining;
    case v1::DESIRED_PHASE_PAUSED:
      return DesiredPhase::kPaused;
    case v1::DESIRED_PHASE_STOPPED:
      return DesiredPhase::kStopped;
    default:
      return DesiredPhase::kIdle;
  }
}

struct Generation {
  uint64_t number = 0;
  NodeState state;
};

// Errors: DATA_LOSS says in what way `bytes` are broken; FAILED_PRECONDITION
// when a newer dfld wrote them.
absl::StatusOr<Generation> Parse(const std::string& bytes) {
  if (bytes.empty()) return absl::DataLossError("it is empty");
  v1::NodeStateFile file;
  if (!file.ParseFromString(bytes)) {
    return absl::DataLossError("it is torn or no state of dfld's");
  }
  if (ChecksumOf(file.format_version(), file.state()) != file.checksum()) {
    return absl::DataLossError("its checksum is wrong");
  }
  if (file.format_version() > kFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("it has format ", file.format_version(),
                     " and this dfld knows ", kFormatVersion,
                     "; run the newer dfld again, or use another "
                     "state_dir"));
  }
  v1::NodeState message;
  if (file.format_version() == 0 || !message.ParseFromString(file.state()) ||
      message.generation() == 0) {
    return absl::DataLossError("it is no state of dfld's");
  }
  Generation generation;
  generation.number = message.generation();
  generation.state.node = message.node();
  generation.state.starts = message.starts();
  generation.state.plan = message.plan().text();
  generation.state.plan_version = message.plan().version();
  generation.state.run_id = message.plan().run_id();
  generation.state.desired_phase = FromProto(message.desired_phase());
  generation.state.added_peers.assign(message.added_peers().begin(),
                                      message.added_peers().end());
  return generation;
}

}  // namespace

absl::StatusOr<NodeStateStore::Loaded> NodeStateStore::Load() {
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
    absl::StatusOr<Generation> generation =
        bytes.ok() ? Parse(*bytes) : absl::StatusOr<Generation>(bytes.status());
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

absl::Status NodeStateStore::Save(const NodeState& state) {
  v1::NodeState message;
  message.set_generation(generation_ + 1);
  message.set_node(state.node);
  message.set_starts(state.starts);
  if (!state.plan.empty()) {
    message.mutable_plan()->set_text(state.plan);
    message.mutable_plan()->set_version(state.plan_version);
    message.mutable_plan()->set_run_id(state.run_id);
  }
  message.set_desired_phase(ToProto(state.desired_phase));
  for (const std::string& address : state.added_peers) {
    message.add_added_peers(address);
  }
  v1::NodeStateFile file;
  file.set_format_version(kFormatVersion);
  if (!message.SerializeToString(file.mutable_state())) {
    return absl::InternalError("the node's state cannot be serialised");
  }
  file.set_checksum(ChecksumOf(kFormatVersion, file.state()));
  DFL_RETURN_IF_ERROR(
      files_.WriteAtomically(kSlots[next_slot_], file.SerializeAsString()));
  ++generation_;
  next_slot_ = 1 - next_slot_;
  return absl::OkStatus();
}

}  // namespace dfl::store
