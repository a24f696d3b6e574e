#include "daemon/store/node_state.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/check.h"
#include "daemon/base/checksum.h"
#include "dfl/storage/v1/storage.pb.h"

namespace dfl::store {
namespace {

namespace v1 = ::dfl::storage::v1;
using runtime::DesiredPhase;

constexpr uint32_t kFormatVersion = 1;

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

}  // namespace

absl::StatusOr<runtime::StateGeneration> NodeStateCodec::Decode(
    const std::string& bytes) const {
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
  if (message.has_plan() && message.plan().text().empty()) {
    return absl::DataLossError("its plan has no text");
  }
  runtime::StateGeneration generation;
  generation.number = message.generation();
  generation.state.node = message.node();
  generation.state.starts = message.starts();
  generation.state.plan = std::make_shared<runtime::KeptPlan>(
      runtime::KeptPlan{message.plan().text(), message.plan().version(),
                        message.plan().run_id(), message.plan().record()});
  generation.state.desired_phase = FromProto(message.desired_phase());
  generation.state.obeyed_order = message.obeyed_order();
  generation.state.added_peers.assign(message.added_peers().begin(),
                                      message.added_peers().end());
  return generation;
}

absl::StatusOr<std::string> NodeStateCodec::Encode(
    const runtime::StateGeneration& generation) const {
  const runtime::RunState& state = generation.state;
  v1::NodeState message;
  message.set_generation(generation.number);
  message.set_node(state.node);
  message.set_starts(state.starts);
  if (!state.plan->text.empty()) {
    message.mutable_plan()->set_text(state.plan->text);
    message.mutable_plan()->set_version(state.plan->version);
    message.mutable_plan()->set_run_id(state.plan->run_id);
    message.mutable_plan()->set_record(state.plan->record);
  }
  message.set_desired_phase(ToProto(state.desired_phase));
  message.set_obeyed_order(state.obeyed_order);
  for (const std::string& address : state.added_peers) {
    message.add_added_peers(address);
  }
  v1::NodeStateFile file;
  file.set_format_version(kFormatVersion);
  if (!message.SerializeToString(file.mutable_state())) {
    return absl::InternalError("the node's state cannot be serialised");
  }
  file.set_checksum(ChecksumOf(kFormatVersion, file.state()));
  return file.SerializeAsString();
}

}  // namespace dfl::store
