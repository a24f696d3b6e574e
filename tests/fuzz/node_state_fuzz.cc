// The files in which a node keeps its state over a restart. The input is tried
// as a file, and once more as what stands in one with a right checksum.
#include <string>

#include "daemon/base/check.h"
#include "daemon/base/checksum.h"
#include "daemon/runtime/keeper/run_state.h"
#include "daemon/store/node_state.h"
#include "dfl/storage/v1/storage.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {
namespace {

void CheckFile(const std::string& bytes) {
  const store::NodeStateCodec codec;
  const auto generation = codec.Decode(bytes);
  if (!generation.ok()) {
    DFL_CHECK(absl::IsDataLoss(generation.status()) ||
              absl::IsFailedPrecondition(generation.status()));
    return;
  }
  DFL_CHECK(generation->number > 0 && generation->state.plan != nullptr);
  const auto encoded = codec.Encode(*generation);
  DFL_CHECK(encoded.ok());
  const auto again = codec.Decode(*encoded);
  DFL_CHECK(again.ok());
  const runtime::RunState& before = generation->state;
  const runtime::RunState& after = again->state;
  DFL_CHECK(again->number == generation->number && after.node == before.node &&
            after.starts == before.starts &&
            after.desired_phase == before.desired_phase &&
            after.obeyed_order == before.obeyed_order &&
            after.added_peers == before.added_peers);
  DFL_CHECK(after.plan->text == before.plan->text);
  DFL_CHECK(codec.Encode(*again).value() == *encoded);
}

}  // namespace

DFL_FUZZ_TARGET(node_state)(absl::string_view bytes) {
  CheckFile(std::string(bytes));
  dfl::storage::v1::NodeStateFile file;
  file.set_format_version(1);
  file.set_state(std::string(bytes));
  file.set_checksum(
      ExtendCrc32c(Crc32c(absl::string_view("\x01\0\0\0", 4)), bytes));
  CheckFile(file.SerializeAsString());
}

}  // namespace dfl::fuzz
